// com.microsoft Gelu, FastGelu, BiasGelu, QuickGelu: fused by ONNX Runtime's graph optimiser.

#include <cmath>

#include "ops/math/broadcast.h"
#include "ops/math/elementwise.h"
#include "ops/math/signatures.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

// `inner` times `outer` is 1/2: if `inner` were 1, the product could be infinite before it is halved.
struct Exact {
  float inner = 0.5F, outer = 1;
  template <class C>
  C operator()(C x) const {
    return C(inner) * x * std::erfc(-x * C(0.7071067811865476)) * C(outer);
  }
};
// 0.5 x (1 + tanh(x (0.0356774 x^2 + 0.797885))): the constants are sqrt(2/pi) and 0.044715 sqrt(2/pi). Written with the
// logistic function, (1 + tanh(u)) / 2 keeps its digits for negative u.
struct Fast {
  float inner = 0.5F, outer = 1;
  template <class C>
  C operator()(C x) const {
    return 2 * C(inner) * x * logistic(2 * x * (C(0.035677408136300125) * x * x + C(0.7978845608028654))) * C(outer);
  }
};

// alpha 1, of fuse-gelu: x times the sum is formed before it is halved.
template <class Fn>
Fn by_order(const OpContext& c) {
  return parse<ActivationAttrs>(c).alpha == 1 ? Fn{1, 0.5F} : Fn{};
}

void run_gelu(OpContext& c) { map_floats(c, by_order<Exact>(c)); }

void run_quick_gelu(OpContext& c) {
  const float alpha = parse<ActivationAttrs>(c).alpha;
  map_floats(c, [=](auto x) { return x * logistic(static_cast<decltype(x)>(alpha) * x); });
}

void infer_biased(InferContext& c) {
  const SymShape* bias = c.shape(1);
  if (bias != nullptr && bias->size() != 1) c.fail("the bias must have rank 1, received {}", to_string(*bias));
  infer_same(c);
}

template <class Fn>
void run_biased(OpContext& c) {
  if (!c.has_input(1)) return map_floats(c, by_order<Fn>(c));
  const Tensor& x = c.input(0);
  const Tensor& bias = c.input(1);
  if (bias.rank() != 1 || x.rank() == 0 || bias.dtype() != x.dtype() || broadcast_shapes(x.shape(), bias.shape()) != x.shape()) {
    c.fail("the bias {} must be as long as the last axis of {}", bias.type_string(), x.type_string());
  }
  Tensor& out = c.output(0, x.dtype(), x.shape());
  dispatch(x.dtype(), FloatTypes{}, c.node().op_type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeType<T>;
    broadcast_binary<T, T, T>(x, bias, out, [](T a, T b) { return static_cast<T>(Fn{}(static_cast<C>(a) + static_cast<C>(b))); });
  });
}

void add(OpTable& t, const char* name, Arity bias, RunFn run) {
  t.add(OpDef("com.microsoft", name, 1)
            .in("X", "T", types::floats)
            .in("bias", "T", types::floats, bias)
            .out("Y", "T", types::floats)
            .infer_with(infer_biased)
            .run_with(run));
}

}  // namespace

void register_ms_activations(OpTable& t) {
  t.add(OpDef("com.microsoft", "Gelu", 1)
            .in("X", "T", types::floats)
            .out("Y", "T", types::floats)
            .infer_with(infer_same)
            .run_with(run_gelu));
  t.add(OpDef("com.microsoft", "QuickGelu", 1)
            .in("X", "T", types::floats)
            .out("Y", "T", types::floats)
            .attrs<ActivationAttrs>()
            .infer_with(infer_same)
            .run_with(run_quick_gelu));
  add(t, "FastGelu", Arity::optional, run_biased<Fast>);
  add(t, "BiasGelu", Arity::required, run_biased<Exact>);
}

}  // namespace sdx::ops
