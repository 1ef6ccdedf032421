// Gradients of element-wise operators of several inputs, with broadcasting.

#include "ops/gradient.h"
#include "ops/math/signatures.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

// Before opset 7 broadcasting is asked for by attributes, and goes by another rule.
void modern(const GradientContext& c) {
  if (c.version() < 7 && parse<LegacyBroadcastAttrs>(c).broadcast) c.refuse("broadcasting as before opset 7");
}

void add(GradientContext& c) {
  modern(c);
  c.set_broadcast(0, c.dy());
  c.set_broadcast(1, c.dy());
}

void sub(GradientContext& c) {
  modern(c);
  c.set_broadcast(0, c.dy());
  if (c.wants(1)) c.set_broadcast(1, -c.dy());
}

void mul(GradientContext& c) {
  modern(c);
  if (c.wants(0)) c.set_broadcast(0, c.dy() * c.in(1));
  if (c.wants(1)) c.set_broadcast(1, c.dy() * c.in(0));
}

void div(GradientContext& c) {
  modern(c);
  const Expr g = c.dy() / c.in(1);
  c.set_broadcast(0, g);
  if (c.wants(1)) c.set_broadcast(1, -(g * c.out(0)));
}

// x^y: y * x^(y - 1), 0 for the exponent 0 though x^-1 may be infinite; y's gradient x^y * log(x), 0 for 0^y where that is
// finite. The exponent may have another type.
void pow(GradientContext& c) {
  modern(c);
  const Expr x = c.in(0);
  const Expr y = c.is_float(c.in(1)) && c.wants(1) ? c.in(1) : c.cast_like(c.in(1), x);
  const Expr zero = c.cast_like(c.scalar(0), x);
  const Tensor* exponent = c.value(1);
  const bool one = exponent != nullptr && exponent->size() == 1;
  const double value = one ? element_as_double(exponent->clone(), 0) : 0;
  if (c.wants(0) && one && value == 2) {
    c.set_broadcast(0, c.dy() * x * 2.0);  // of squared errors
  } else if (c.wants(0) && one && value == 0) {
    c.set(0, c.zeros_like(x));
  } else if (c.wants(0)) {
    const Expr slope = y * call("Pow", x, y - c.cast_like(c.scalar(1), x));
    c.set_broadcast(0, c.dy() * (one ? slope : where(call("Equal", y, zero), zero, slope)));
  }
  if (!c.wants(1)) return;
  const Expr at_zero = call("Equal", x, zero);
  const Expr finite = call("And", at_zero, call("Not", call("Less", y, zero)));
  const Expr log = where(finite, zero, call("Log", x));
  c.set_broadcast(1, c.cast_like(c.dy() * c.out(0) * log, c.in(1)));
}

void sum(GradientContext& c) {
  for (std::size_t i = 0; i < c.num_inputs(); ++i) c.set_broadcast(i, c.dy());
}

void mean(GradientContext& c) {
  const Expr g = c.dy() / static_cast<double>(c.num_inputs());
  for (std::size_t i = 0; i < c.num_inputs(); ++i) c.set_broadcast(i, g);
}

// Equal elements share the gradient evenly.
void extreme(GradientContext& c) {
  std::vector<Expr> chosen;
  Expr count;
  for (std::size_t i = 0; i < c.num_inputs(); ++i) {
    chosen.push_back(c.cast_like(call("Equal", c.in(i), c.out(0)), c.dy()));
    count = count ? count + chosen.back() : chosen.back();
  }
  const Expr g = c.dy() / count;
  for (std::size_t i = 0; i < c.num_inputs(); ++i) {
    if (c.wants(i)) c.set_broadcast(i, g * chosen[i]);
  }
}

void prelu(GradientContext& c) {
  if (c.version() < 7) c.refuse("broadcasting as before opset 7");
  const Expr x = c.in(0);
  const Expr slope = c.in(1);
  const Expr above = call("Greater", x, 0.0);  // at 0 the slope, as in frameworks that train
  if (c.wants(0)) c.set(0, c.dy() * where(above, c.scalar(1), slope));
  if (c.wants(1)) c.set_broadcast(1, where(above, c.scalar(0), c.dy() * x));
}

void where_gradient(GradientContext& c) {
  const Expr zero = c.scalar(0);
  if (c.wants(1)) c.set_broadcast(1, where(c.in(0), c.dy(), zero));
  if (c.wants(2)) c.set_broadcast(2, where(c.in(0), zero, c.dy()));
}

// a - b * floor(a / b), or with fmod truncated: both are steps of b.
void mod(GradientContext& c) {
  c.set_broadcast(0, c.dy());
  if (!c.wants(1)) return;
  const Expr steps = call("Round", (c.in(0) - c.out(0)) / c.in(1));
  c.set_broadcast(1, -(c.dy() * steps));
}

}  // namespace

void register_gradients_binary(GradientTable& t) {
  t.add({{"Add", add}, {"Sub", sub}, {"Mul", mul}, {"Div", div}, {"Pow", pow}, {"Mod", mod}, {"Sum", sum}, {"Mean", mean}});
  t.add({"Max", "Min"}, extreme);
  t.add("PRelu", prelu);
  t.add("Where", where_gradient);
}

}  // namespace sdx::ops
