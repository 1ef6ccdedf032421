#include "providers/vulkan/region_kernel.h"

#include <algorithm>
#include <list>
#include <mutex>

#include "base/error.h"
#include "providers/vulkan/device_plan.h"

namespace sdx::vulkan {
namespace {

constexpr std::size_t kMostPlans = 8;
constexpr std::uint64_t kMostBlock = std::uint64_t{64} << 20;
constexpr std::int64_t kFolded = 4096;  // elements that the host computes from extents

std::uint64_t block_bytes(const Graph& graph) {
  std::uint64_t bytes = 0;
  for (const ValueInfo& v : graph.values()) bytes += v.constant ? v.constant->bytes() + 64 : 0;
  return std::clamp<std::uint64_t>(bytes, 4096, kMostBlock);
}

class RegionKernel : public Kernel {
 public:
  RegionKernel(const Graph& graph, std::shared_ptr<const Gpu> gpu)
      : graph_(graph),
        gpu_(std::move(gpu)),
        constants_(gpu_, block_bytes(graph_)),
        inference_(graph_, ops::InferOptions{.fold_elements = kFolded}),
        name_(std::string("vulkan: ") + gpu_->facts().name) {
    std::vector<Type> types;
    for (const ValueId v : graph_.inputs()) types.push_back(graph_.value(v).type);
    const bool fixed = std::all_of(types.begin(), types.end(), [](const Type& t) { return t.has_static_shape(); });
    if (fixed) plan_for(types);
  }

  std::string_view name() const override { return name_; }
  bool allocates_outputs() const override { return true; }

  void run(const KernelContext& context) const override {
    std::vector<const Tensor*> inputs;
    std::vector<Type> types;
    for (const Value* v : context.inputs) {
      const Tensor& t = v->tensor();
      types.push_back(Type::tensor(t.dtype(), to_sym(t.shape())));
      inputs.push_back(&t);
    }
    plan_for(types)->run(inputs, {context.outputs.begin(), context.outputs.end()}, context.services->stop());
  }

 private:
  using Key = std::vector<std::int64_t>;

  std::shared_ptr<DevicePlan> plan_for(const std::vector<Type>& types) const {
    Key key;
    for (const Type& t : types) {
      key.push_back(static_cast<std::int64_t>(t.elem));
      key.push_back(static_cast<std::int64_t>(t.shape->size()));
      for (const Dim& d : *t.shape) key.push_back(d.value());
    }
    const std::lock_guard lock(mutex_);
    const auto it = std::find_if(plans_.begin(), plans_.end(), [&](const auto& p) { return p.first == key; });
    if (it != plans_.end()) {
      plans_.splice(plans_.begin(), plans_, it);
      return plans_.front().second;
    }
    auto made = std::make_shared<DevicePlan>(graph_, inference_.update(types), gpu_, constants_);
    plans_.emplace_front(std::move(key), made);
    if (plans_.size() > kMostPlans) plans_.pop_back();
    return made;
  }

  const Graph graph_;
  std::shared_ptr<const Gpu> gpu_;
  mutable ConstantStore constants_;
  mutable std::mutex mutex_;  // guards what follows
  mutable ops::Inference inference_;
  mutable std::list<std::pair<Key, std::shared_ptr<DevicePlan>>> plans_;  // the last used first
  std::string name_;
};

}  // namespace

std::unique_ptr<Kernel> make_region_kernel(const Graph& graph, std::shared_ptr<const Gpu> gpu) {
  return std::make_unique<RegionKernel>(graph, std::move(gpu));
}

}  // namespace sdx::vulkan
