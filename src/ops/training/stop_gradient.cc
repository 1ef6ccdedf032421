// sdx.StopGradient: its input as it is, which no gradient passes: tensor.detach() of PyTorch.

#include "ops/context.h"
#include "ops/op.h"
#include "ops/tensor/movement.h"

namespace sdx::ops {
namespace {

void infer_stop_gradient(InferContext& c) {
  c.output(0, c.type(0));
  if (const auto* elements = c.sym(0)) c.output_sym(0, *elements);
}

void run_stop_gradient(OpContext& c) {
  const Tensor& x = c.input(0);
  copy_all(x, c.output(0, x.dtype(), x.shape()));
}

}  // namespace

void register_stop_gradient(OpTable& t) {
  t.add(OpDef("sdx", "StopGradient", 1)
            .in("X", "T", types::any_tensor)
            .out("Y", "T", types::any_tensor)
            .infer_with(infer_stop_gradient)
            .run_with(run_stop_gradient));
}

}  // namespace sdx::ops
