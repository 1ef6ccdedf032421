// com.microsoft DropoutGrad, FakeQuant, FakeQuantGrad.

#include <cmath>

#include "ops/math/elementwise.h"
#include "ops/math/float_view.h"
#include "ops/op.h"
#include "ops/signature.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

struct FakeQuantAttrs {
  std::int64_t quant_min = 0, quant_max = 255;

  void fields(auto& f) {
    f("quant_min", quant_min);
    f("quant_max", quant_max);
  }
};

double single(const OpContext& c, std::size_t i, double otherwise) {
  const Tensor* t = c.optional_input(i);
  if (t == nullptr) return otherwise;
  if (t->size() != 1) c.fail("input {} must be one value, received {}", i, t->type_string());
  return element_as_double(*t, 0);
}

// dX = dY * factor where the mask is set, else 0.
void run_masked(OpContext& c, double factor) {
  const Tensor &g = c.input(0), &mask = c.input(1);
  if (mask.shape() != g.shape()) {
    c.fail("the mask {} must have the shape of the gradient {}", mask.type_string(), g.type_string());
  }
  Tensor& out = c.output(0, g.dtype(), g.shape());
  dispatch_compute(g.dtype(), c.node().op_type, [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> dy(g);
    FloatOutput<C> dx(out);
    const bool* keep = c.data<bool>(1);
    const auto scale = static_cast<C>(factor);
    for (std::int64_t i = 0; i < g.size(); ++i) dx[i] = keep[i] ? dy[i] * scale : C(0);
    dx.store();
  });
}

void run_dropout_grad(OpContext& c) {
  const double ratio = single(c, 2, 0.5);
  if (!(ratio >= 0 && ratio < 1)) c.fail("the ratio is {}; permitted: 0 up to but not including 1", ratio);
  // Without dropping the mask says nothing: ONNX Runtime leaves it out of account as well.
  if (ratio == 0 || single(c, 3, 1) == 0) return c.set_output(0, c.input(0));
  run_masked(c, 1 / (1 - ratio));
}

void run_fake_quant_grad(OpContext& c) { run_masked(c, 1); }

void infer_fake_quant(InferContext& c) {
  infer_same(c);
  if (const SymShape* s = c.shape(0)) return c.output(1, DataType::boolean, *s);
  c.output(1, DataType::boolean);
}

// Rounded to the nearest step as a quantised tensor would hold it, and whether it lies within.
void run_fake_quant(OpContext& c) {
  const auto attr = parse<FakeQuantAttrs>(c);
  const Tensor& in = c.input(0);
  const double scale = single(c, 1, 1);
  const double zero = std::trunc(single(c, 2, 0));
  if (scale == 0) c.fail("the scale must not be 0");
  if (attr.quant_min > attr.quant_max) c.fail("quant_min {} is above quant_max {}", attr.quant_min, attr.quant_max);
  const auto low = static_cast<double>(attr.quant_min), high = static_cast<double>(attr.quant_max);
  Tensor& out = c.output(0, in.dtype(), in.shape());
  bool* mask = static_cast<bool*>(c.output(1, DataType::boolean, in.shape()).mutable_data());
  dispatch_compute(in.dtype(), "FakeQuant", [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> x(in);
    FloatOutput<C> y(out);
    for (std::int64_t i = 0; i < in.size(); ++i) {
      const double q = std::nearbyint(static_cast<double>(x[i] / static_cast<C>(scale))) + zero;
      mask[i] = low <= q && q <= high;
      y[i] = static_cast<C>((std::fmin(high, std::fmax(low, q)) - zero) * scale);
    }
    y.store();
  });
}

}  // namespace

void register_masked_grads(OpTable& t) {
  t.add(OpDef("com.microsoft", "DropoutGrad", 1)
            .in("dy", "T", types::floats)
            .in("mask", "T2", types::boolean)
            .in("ratio", "T1", types::floats, Arity::optional)
            .in("training_mode", "T2", types::boolean, Arity::optional)
            .out("dx", "T", types::floats)
            .infer_with(infer_same)
            .run_with(run_dropout_grad));
  t.add(OpDef("com.microsoft", "FakeQuant", 1)
            .in("input scale zero_point", "T", types::floats)
            .out("output", "T", types::floats)
            .out("mask", "T_BOOL", types::boolean)
            .attrs<FakeQuantAttrs>()
            .infer_with(infer_fake_quant)
            .run_with(run_fake_quant));
  t.add(OpDef("com.microsoft", "FakeQuantGrad", 1)
            .in("dY", "T", types::floats)
            .in("gradient_mask", "T_BOOL", types::boolean)
            .out("dX", "T", types::floats)
            .infer_with(infer_same)
            .run_with(run_fake_quant_grad));
}

}  // namespace sdx::ops
