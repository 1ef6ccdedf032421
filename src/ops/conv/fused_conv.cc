// com.microsoft FusedConv 1: activation(conv(X, W) + B + Z).

#include "ops/context.h"
#include "ops/conv/conv_common.h"
#include "ops/conv/signatures.h"
#include "ops/math/float_view.h"
#include "ops/math/fused_activation.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

using enum ConvIn::Slot;

void infer_fused_conv(InferContext& c) {
  read_fused_activation(c.node());
  infer_conv(c);
}

void run_fused_conv(OpContext& c) {
  Tensor& y = run_conv(c);
  if (const Tensor* z = c.optional_input(kZ)) {
    if (z->shape() != y.shape())
      c.fail("Z must have the output's shape {}, received {}", to_string(y.shape()), to_string(z->shape()));
    dispatch_compute(y.dtype(), "FusedConv", [&](auto tag) {
      using C = typename decltype(tag)::type;
      const FloatInput<C> sum(y), add(*z);
      FloatOutput<C> out(y);
      for (std::int64_t i = 0; i < y.size(); ++i) out[i] = sum[i] + add[i];
      out.store();
    });
  }
  apply_fused_activation(read_fused_activation(c.node()), y);
}

}  // namespace

void register_fused_conv(OpTable& t) {
  t.add(OpDef("com.microsoft", "FusedConv", 1)
            .in("X W", "T", types::floats)
            .in("B Z", "T", types::floats, Arity::optional)
            .out("Y", "T", types::floats)
            .attrs<ConvAttrs>()
            .attrs<FusedActivationFields>()
            .infer_with(infer_fused_conv)
            .run_with(run_fused_conv));
}

}  // namespace sdx::ops
