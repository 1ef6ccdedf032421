// com.microsoft ReluGrad, LeakyReluGrad, SigmoidGrad, TanhGrad, GeluGrad, FastGeluGrad, QuickGeluGrad, BiasGeluGrad_dX,
// BiasFastGeluGrad_dX: the gradient of the result times the slope, which is known from the input X or the result Y.

#include <cmath>

#include "ops/math/elementwise.h"
#include "ops/math/float_view.h"
#include "ops/op.h"
#include "ops/tensor/shape_values.h"
#include "ops/training/ort/signatures.h"

namespace sdx::ops {
namespace {

using enum ActivationGradIn::Slot;

struct ReluSlope {
  template <class C>
  C operator()(C x) const {
    return x > 0 ? C(1) : C(0);
  }
};
struct SigmoidSlope {
  template <class C>
  C operator()(C y) const {
    return y * (1 - y);
  }
};
struct TanhSlope {
  template <class C>
  C operator()(C y) const {
    return 1 - y * y;
  }
};
struct LeakySlope {
  double alpha;
  template <class C>
  C operator()(C y) const {
    return y > 0 ? C(1) : static_cast<C>(alpha);
  }
};
// x * Phi(x): Phi(x) + x * phi(x)
struct GeluSlope {
  template <class C>
  C operator()(C x) const {
    return C(0.5) * std::erfc(-x * C(0.7071067811865476)) + x * C(0.3989422804014327) * std::exp(C(-0.5) * x * x);
  }
};
// x * s(v), s the logistic function, v = 2 sqrt(2 / pi) (x + 0.044715 x^3): s + x * s * (1 - s) * v'
struct FastGeluSlope {
  template <class C>
  C operator()(C x) const {
    const C k = C(1.5957691216057308);
    const C s = logistic(k * x * (1 + C(0.044715) * x * x));
    return s + x * s * (1 - s) * k * (1 + C(0.134145) * x * x);
  }
};
struct QuickGeluSlope {
  double alpha;
  template <class C>
  C operator()(C x) const {
    const auto a = static_cast<C>(alpha);
    const C s = logistic(a * x);
    return s * (1 + a * x * (1 - s));
  }
};

void infer_activation(InferContext& c) {
  const SymShape *dy = c.shape(kDy), *saved = c.shape(kSaved);
  if (dy == nullptr && saved == nullptr) return c.output(0, c.dtype(kDy));
  if (dy == nullptr || saved == nullptr) return c.output(0, c.dtype(kDy), dy != nullptr ? *dy : *saved);
  if (dy->size() != saved->size())
    c.fail("inputs 0 and 1 must have one shape; received {}, {}", to_string(*dy), to_string(*saved));
  SymShape out = *dy;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = agree(out[i], (*saved)[i], "the extents of inputs 0 and 1");
  c.output(0, c.dtype(kDy), std::move(out));
}

void check_same_shape(OpContext& c) {
  if (c.input(kDy).shape() == c.input(kSaved).shape()) return;
  c.fail("inputs 0 and 1 must have one shape; received {} and {}", c.input(kDy).type_string(), c.input(kSaved).type_string());
}

template <class Slope>
void run_slope(OpContext& c, Slope slope) {
  check_same_shape(c);
  const Tensor& g = c.input(kDy);
  Tensor& out = c.output(0, g.dtype(), g.shape());
  dispatch_compute(g.dtype(), c.node().op_type, [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> dy(g), saved(c.input(kSaved));
    FloatOutput<C> dx(out);
    const C *from = dy.data(), *x = saved.data();
    C* to = dx.data();
    parallel_for(g.size(), kElementGrain, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) to[i] = from[i] * slope(x[i]);
    });
    dx.store();
  });
}

template <class Slope>
void run_plain(OpContext& c) {
  run_slope(c, Slope{});
}
template <class Slope>
void run_with_alpha(OpContext& c) {
  run_slope(c, Slope{static_cast<double>(parse<SlopeAttrs>(c).alpha)});
}

// Gradients of f(x + bias) by x.
template <class Slope>
void run_biased(OpContext& c) {
  check_same_shape(c);
  const Tensor &g = c.input(kDy), &bias = c.input(kBias);
  if (g.rank() == 0 || bias.rank() != 1 || bias.dim(0) != g.shape().back()) {
    c.fail("the bias {} must be as long as the last axis of {}", bias.type_string(), g.type_string());
  }
  Tensor& out = c.output(0, g.dtype(), g.shape());
  dispatch_compute(g.dtype(), c.node().op_type, [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> dy(g), x(c.input(kSaved)), b(bias);
    FloatOutput<C> dx(out);
    for (std::int64_t i = 0; i < g.size(); ++i) dx[i] = dy[i] * Slope{}(x[i] + b[i % bias.size()]);
    dx.store();
  });
}

OpDef def(const char* name, const char* saved) {
  OpDef d("com.microsoft", name, 1);
  d.in("dY", "T", types::floats).in(saved, "T", types::floats);
  return d;
}

OpDef finish(OpDef d, RunFn run) {
  d.out("dX", "T", types::floats);
  return std::move(d).infer_with(infer_activation).run_with(run);
}

}  // namespace

void register_activation_grads(OpTable& t) {
  t.add(finish(def("ReluGrad", "X"), run_plain<ReluSlope>));
  t.add(finish(def("SigmoidGrad", "Y"), run_plain<SigmoidSlope>));
  t.add(finish(def("TanhGrad", "Y"), run_plain<TanhSlope>));
  t.add(finish(def("LeakyReluGrad", "Y").attrs<SlopeAttrs>(), run_with_alpha<LeakySlope>));
  t.add(finish(def("GeluGrad", "X"), run_plain<GeluSlope>));
  t.add(finish(def("FastGeluGrad", "X"), run_plain<FastGeluSlope>));
  t.add(finish(def("QuickGeluGrad", "X").attrs<SlopeAttrs>(), run_with_alpha<QuickGeluSlope>));
  t.add(finish(def("BiasGeluGrad_dX", "X").in("B", "T", types::floats), run_biased<GeluSlope>));
  t.add(finish(def("BiasFastGeluGrad_dX", "X").in("B", "T", types::floats), run_biased<FastGeluSlope>));
}

}  // namespace sdx::ops
