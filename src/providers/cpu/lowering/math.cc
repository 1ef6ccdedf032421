// Sin, Cos, Atan, Asin, Acos and Mod in float32.

#include "kernels/cpu/elementwise/math.h"

#include "ops/math/signatures.h"
#include "providers/cpu/broadcast.h"
#include "providers/cpu/kernel_table.h"
#include "providers/cpu/unary_kernel.h"

namespace sdx::cpu {
namespace {

template <Math kOp>
std::unique_ptr<Kernel> make_math(LowerContext& c) {
  if (c.dtype(0) != DataType::float32) return c.refuse("not float32");
  return std::make_unique<UnaryF32<Math, math_f32>>("math-f32", kOp);
}

struct ModState : KernelState {
  RowPlan<2> plan;
};

class ModKernel : public Kernel {
 public:
  explicit ModKernel(Remainder op) : op_(op) {}
  std::string_view name() const override { return "mod-f32"; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = std::make_unique<ModState>();
    state->plan = plan_rows<2>({c.input_shape(0), c.input_shape(1)}, c.output_shape(0));
    return state;
  }
  void run(const KernelContext& c) const override {
    remainder_f32(op_, static_cast<const ModState*>(c.state)->plan, c.in<float>(0), c.in<float>(1), c.out<float>(0));
  }

 private:
  Remainder op_;
};

std::unique_ptr<Kernel> make_mod(LowerContext& c) {
  if (c.dtype(0) != DataType::float32 || c.dtype(1) != DataType::float32) return c.refuse("not float32");
  for (const std::size_t i : {0, 1}) {
    const SymShape* s = c.shape(i);
    if (s == nullptr || s->size() > static_cast<std::size_t>(kMaxBroadcastRank)) return c.refuse("rank unknown or above 8");
  }
  return std::make_unique<ModKernel>(ops::parse<ops::ModAttrs>(c).fmod ? Remainder::fmod : Remainder::modulo);
}

}  // namespace

void register_kernels_math(KernelTable& t) {
  t.add("", "Sin", "math-f32", 10, make_math<Math::sin>);
  t.add("", "Cos", "math-f32", 10, make_math<Math::cos>);
  t.add("", "Atan", "math-f32", 10, make_math<Math::atan>);
  t.add("", "Asin", "math-f32", 10, make_math<Math::asin>);
  t.add("", "Acos", "math-f32", 10, make_math<Math::acos>);
  t.add("", "Mod", "mod-f32", 10, make_mod);
}

}  // namespace sdx::cpu
