#include "providers/cpu/kernel_table.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "graph/edit.h"
#include "ops/custom.h"
#include "ops/op.h"
#include "providers/cpu/custom_kernel.h"

namespace sdx::cpu {

void register_all_kernels(KernelTable& table);  // generated

namespace {

const Type kUnknown{};

class ReferenceKernel : public Kernel {
 public:
  explicit ReferenceKernel(const Node& node)
      : node_(node), def_(ops::find(node)), in_place_(node.custom ? node.custom->in_place : -1) {
    SDX_ASSERT(def_ != nullptr);
  }
  std::string_view name() const override { return "reference"; }
  int in_place() const override { return in_place_; }
  bool allocates_outputs() const override { return in_place_ < 0; }
  void run(const KernelContext& c) const override {
    ops::OpContext context(node_, c.inputs, c.outputs, *c.services, &memo_);
    def_->run(context);
  }

 private:
  const Node& node_;  // of the program's graph, which outlives its kernels
  const ops::OpDef* def_;
  int in_place_;
  mutable ops::NodeMemo memo_;
};

}  // namespace

const Type& LowerContext::input(std::size_t i) const { return has_input(i) ? graph_.value(node_.inputs[i]).type : kUnknown; }

const Type& LowerContext::output(std::size_t i) const { return has_output(i) ? graph_.value(node_.outputs[i]).type : kUnknown; }

const Tensor* LowerContext::constant(std::size_t i) const { return constant_input(graph_, node_, i); }

Packed LowerContext::pack(std::initializer_list<const Tensor*> sources, std::size_t bytes, const cache::PackKey& key,
                          const std::function<void(float*)>& fill) {
  const cache::PackSources span(sources.begin(), sources.size());
  if (packs_ != nullptr) return Packed(packs_->get(key, span, bytes, fill));
  cache::PackStore alone;
  return Packed(alone.get(key, span, bytes, fill));
}

std::size_t LowerContext::choose(std::vector<std::string_view> kernels) {
  offered_ = std::move(kernels);
  const auto at = std::find(offered_.begin(), offered_.end(), wanted_);
  return at == offered_.end() ? 0 : static_cast<std::size_t>(at - offered_.begin());
}

void KernelTable::add(std::string domain, std::string op, std::string name, int rank, MakeKernel make) {
  entries_.push_back({std::move(domain), std::move(op), std::move(name), rank, make});
}

void KernelTable::finish() {
  std::stable_sort(entries_.begin(), entries_.end(), [](const KernelEntry& a, const KernelEntry& b) {
    return std::tie(a.domain, a.op, a.rank) < std::tie(b.domain, b.op, b.rank);
  });
}

std::vector<const KernelEntry*> KernelTable::find(std::string_view domain, std::string_view op) const {
  std::vector<const KernelEntry*> found;
  const auto key = [](const KernelEntry& e) { return std::pair<std::string_view, std::string_view>(e.domain, e.op); };
  const std::pair wanted(domain, op);
  auto it =
      std::lower_bound(entries_.begin(), entries_.end(), wanted, [&](const KernelEntry& e, const auto& k) { return key(e) < k; });
  for (; it != entries_.end() && key(*it) == wanted; ++it) found.push_back(&*it);
  return found;
}

// Never destroyed, as the table of operators.
const KernelTable& kernel_table() {
  static const KernelTable& instance = *[] {
    auto* t = new KernelTable;
    register_all_kernels(*t);
    t->finish();
    return t;
  }();
  return instance;
}

std::unique_ptr<Kernel> make_reference(const Node& node) {
  const bool of_library = node.custom && node.custom->functions.run != nullptr;
  return of_library ? make_custom(node) : std::make_unique<ReferenceKernel>(node);
}

}  // namespace sdx::cpu
