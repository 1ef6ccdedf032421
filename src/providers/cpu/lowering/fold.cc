// Min, Max, Sum and Mean of any number of inputs, for all types of numbers.

#include <algorithm>

#include "kernels/cpu/elements/elementwise.h"
#include "kernels/cpu/elements/halves.h"
#include "providers/cpu/broadcast.h"
#include "providers/cpu/kernel_table.h"

namespace sdx::cpu {
namespace {

// plans[0] combines inputs 0 and 1; each later plan combines the result so far with the next input.
struct FoldState : KernelState {
  std::vector<RowPlan<2>> plans;
  std::int64_t count = 0;  // elements of the result
  std::int64_t most = 0;   // of an input
};

class FoldKernel : public Kernel {
 public:
  FoldKernel(BinaryFn fn, bool mean, DataType type) : fn_(fn), mean_(mean), type_(type) {}
  std::string_view name() const override { return "fold-typed"; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = std::make_unique<FoldState>();
    const Shape& out = c.output_shape(0);
    for (std::size_t i = 0; i < c.inputs.size(); ++i) {
      state->most = std::max(state->most, element_count(c.input_shape(i)));
      if (i > 0) state->plans.push_back(plan_rows<2>({i == 1 ? c.input_shape(0) : out, c.input_shape(i)}, out));
    }
    state->count = element_count(out);
    // 16-bit floats are summed in float32 and rounded once: the workspace has room for a result and two operands.
    if (is_half(type_)) c.workspace_bytes = static_cast<std::size_t>(state->count + 2 * state->most) * sizeof(float);
    return state;
  }
  void run(const KernelContext& c) const override {
    const auto& s = *static_cast<const FoldState*>(c.state);
    if (s.count == 0) return;
    if (!is_half(type_)) return fold(c, s, type_, c.output(0).mutable_data(), [&](std::size_t i) { return c.input(i).data(); });
    auto* sum = static_cast<float*>(c.workspace);
    float* const operands = sum + s.count;
    fold(c, s, DataType::float32, sum, [&](std::size_t i) -> const void* {
      float* const wide = operands + (i == 0 ? 0 : s.most);
      widen(type_, c.input(i).data(), wide, c.input(i).size());
      return wide;
    });
    narrow(type_, sum, c.output(0).mutable_data(), s.count);
  }

 private:
  template <class Operand>
  void fold(const KernelContext& c, const FoldState& s, DataType type, void* y, Operand&& operand) const {
    const void* first = operand(0);
    for (std::size_t i = 0; i < s.plans.size(); ++i) {
      apply(fn_, type, s.plans[i], i == 0 ? first : y, operand(i + 1), y);
    }
    if (!mean_) return;
    constexpr std::int64_t kSteps[2] = {1, 0};
    const RowPlan<2> whole = plan_rows<2>(1, &s.count, {kSteps, kSteps + 1});
    const auto inputs = static_cast<double>(c.inputs.size());
    const auto single = static_cast<float>(inputs);
    apply(BinaryFn::divide, type, whole, y, type == DataType::float64 ? static_cast<const void*>(&inputs) : &single, y);
  }

  BinaryFn fn_;
  bool mean_;
  DataType type_;
};

template <BinaryFn kFn, bool kMean = false>
std::unique_ptr<Kernel> make_fold(LowerContext& c) {
  const std::size_t inputs = c.node().inputs.size();
  const DataType type = c.dtype(0);
  if (inputs < 2) return c.refuse("a single input");
  if (!supports(kFn, type) || type == DataType::boolean) return c.refuse("not of a type that it knows");
  for (std::size_t i = 0; i < inputs; ++i) {
    if (c.dtype(i) != type) return c.refuse("inputs of several types");
    const SymShape* shape = c.shape(i);
    if (shape == nullptr || shape->size() > static_cast<std::size_t>(kMaxBroadcastRank))
      return c.refuse("rank unknown or above 8");
  }
  return std::make_unique<FoldKernel>(kFn, kMean, type);
}

}  // namespace

void register_kernels_fold(KernelTable& t) {
  t.add("", "Min", "fold-typed", 30, make_fold<BinaryFn::minimum>);
  t.add("", "Max", "fold-typed", 30, make_fold<BinaryFn::maximum>);
  t.add("", "Sum", "fold-typed", 30, make_fold<BinaryFn::add>);
  t.add("", "Mean", "fold-typed", 30, make_fold<BinaryFn::add, true>);
}

}  // namespace sdx::cpu
