// sdx 1: Linear, what passes/fuse/linear.cc makes of matrix products with weights: Y = activation(X x W + B + Z).

#include "ops/context.h"
#include "ops/math/float_view.h"
#include "ops/math/fused_activation.h"
#include "ops/matrix/matmul_reference.h"
#include "ops/matrix/signatures.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

using enum LinearIn::Slot;

void infer_linear(InferContext& c) {
  read_fused_activation(c.node());
  const SymShape *x = c.shape(kX), *w = c.shape(kW);
  if (x == nullptr || w == nullptr) return c.output(0, c.dtype(kX));
  if (w->size() != 2) c.fail("W must have 2 axes, received {}", to_string(*w));
  c.output(0, c.dtype(kX), matmul_shape(*x, *w, false, parse<LinearAttrs>(c).trans_b));
}

void run_linear(OpContext& c) {
  const Tensor &x = c.input(kX), &w = c.input(kW);
  if (w.rank() != 2) c.fail("W must have 2 axes, received {}", w.type_string());
  const bool trans = parse<LinearAttrs>(c).trans_b;
  const MatMulPlan plan = matmul_plan(x.shape(), w.shape(), false, trans);
  const Tensor *bias = c.optional_input(kB), *residual = c.optional_input(kZ);
  if (bias != nullptr && bias->shape() != Shape{plan.n}) {
    c.fail("B must have shape [{}], received {}", plan.n, bias->type_string());
  }
  if (residual != nullptr && residual->shape() != plan.output) {
    c.fail("Z must have the output's shape {}, received {}", to_string(plan.output), residual->type_string());
  }
  Tensor& y = c.output(0, x.dtype(), plan.output);
  matmul_reference(plan, x, w, y, c.stop(), false, trans);
  dispatch_compute(y.dtype(), "Linear", [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> product(y), b(bias), z(residual);
    FloatOutput<C> out(y);
    for (std::int64_t i = 0; i < y.size(); ++i) out[i] = product[i] + (b ? b[i % plan.n] : C(0)) + (z ? z[i] : C(0));
    out.store();
  });
  apply_fused_activation(read_fused_activation(c.node()), y);
}

}  // namespace

void register_linear(OpTable& t) {
  t.add(OpDef("sdx", "Linear", 1)
            .in("X", "T", types::floats)
            .in("W", "W", types::floats)  // perhaps narrower than X: widened as it is read
            .in("B Z", "T", types::floats, Arity::optional)
            .out("Y", "T", types::floats)
            .attrs<LinearAttrs>()
            .attrs<FusedActivationFields>()
            .infer_with(infer_linear)
            .run_with(run_linear));
}

}  // namespace sdx::ops
