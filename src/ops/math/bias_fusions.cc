// com.microsoft 1: BiasAdd, BiasSplitGelu: fusions of diffusion models.

#include <cmath>

#include "ops/context.h"
#include "ops/math/elementwise.h"
#include "ops/math/float_view.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

void check_bias(OpContext& c, const Tensor& x, const Tensor& bias) {
  if (x.rank() == 0 || bias.rank() != 1 || bias.dim(0) != x.shape().back()) {
    c.fail("the bias {} must be as long as the last axis of {}", bias.type_string(), x.type_string());
  }
}

void run_bias_add(OpContext& c) {
  const Tensor& x = c.input(0);
  const Tensor& bias = c.input(1);
  const Tensor& skip = c.input(2);
  check_bias(c, x, bias);
  if (skip.shape() != x.shape()) c.fail("skip {} must have the shape of {}", skip.type_string(), x.type_string());
  Tensor& out = c.output(0, x.dtype(), x.shape());
  dispatch_compute(x.dtype(), "BiasAdd", [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> a(x), b(bias), s(skip);
    FloatOutput<C> y(out);
    for (std::int64_t i = 0; i < x.size(); ++i) y[i] = a[i] + b[i % bias.size()] + s[i];
    y.store();
  });
}

void infer_bias_split_gelu(InferContext& c) {
  const SymShape* x = c.shape(0);
  if (x == nullptr) return c.output(0, c.dtype(0));
  if (x->empty()) c.fail("X must have at least one axis");
  if (x->back().is_const() && x->back().value() % 2 != 0) c.fail("X's last extent must be even, received {}", x->back().value());
  SymShape out = *x;
  out.back() = floor_div(out.back(), Dim(2));
  c.output(0, c.dtype(0), std::move(out));
}

void run_bias_split_gelu(OpContext& c) {
  const Tensor& x = c.input(0);
  const Tensor& bias = c.input(1);
  check_bias(c, x, bias);
  const std::int64_t width = bias.size(), half = width / 2;
  if (width % 2 != 0) c.fail("X's last extent must be even, received {}", width);
  Shape shape = x.shape();
  shape.back() = half;
  Tensor& out = c.output(0, x.dtype(), shape);
  dispatch_compute(x.dtype(), "BiasSplitGelu", [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> a(x), b(bias);
    FloatOutput<C> y(out);
    for (std::int64_t i = 0; i < out.size(); ++i) {
      const std::int64_t col = i % half, left = i / half * width + col;
      const C gate = a[left + half] + b[col + half];
      y[i] = (a[left] + b[col]) * C(0.5) * gate * std::erfc(-gate * C(0.7071067811865476));
    }
    y.store();
  });
}

}  // namespace

void register_bias_fusions(OpTable& t) {
  t.add(OpDef("com.microsoft", "BiasAdd", 1)
            .in("X bias skip", "T", types::floats)
            .out("Y", "T", types::floats)
            .infer_with(infer_same)
            .run_with(run_bias_add));
  t.add(OpDef("com.microsoft", "BiasSplitGelu", 1)
            .in("X bias", "T", types::floats)
            .out("Y", "T", types::floats)
            .infer_with(infer_bias_split_gelu)
            .run_with(run_bias_split_gelu));
}

}  // namespace sdx::ops
