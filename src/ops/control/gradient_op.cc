// Gradient: ai.onnx.preview.training 1. A session replaces these nodes by nodes that compute the gradients
// (passes/expand_gradients.h).

#include "ops/context.h"
#include "ops/control/signatures.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

void infer_gradient(InferContext& c) {
  const auto attr = parse<GradientAttrs>(c);
  const std::size_t differentiated = attr.xs.size();
  const std::size_t given = differentiated + attr.zs.size();
  if (c.num_inputs() != given) c.fail("xs and zs name {} values, received {} inputs", given, c.num_inputs());
  if (c.num_outputs() > differentiated) c.fail("{} outputs for {} names in xs", c.num_outputs(), differentiated);
  for (std::size_t i = 0; i < c.num_outputs(); ++i) c.output(i, c.type(i));
}

void run_gradient(OpContext& c) { c.fail("the node was not expanded into those that compute the gradient"); }

}  // namespace

void register_gradient_op(OpTable& t) {
  t.add(OpDef("ai.onnx.preview.training", "Gradient", 1)
            .in("Inputs", "", types::any_tensor, Arity::variadic)
            .out("Outputs", "", types::floats, Arity::variadic)
            .attrs<GradientAttrs>()
            .infer_with(infer_gradient)
            .run_with(run_gradient));
}

}  // namespace sdx::ops
