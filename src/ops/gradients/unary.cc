// Gradients of functions of one element, y = f(x): dx = dy * f'(x).

#include <cmath>

#include "ops/gradient.h"
#include "ops/math/signatures.h"
#include "ops/random/signatures.h"

namespace sdx::ops {
namespace {

constexpr double kPi = 3.14159265358979323846;

// `slope` computes f'(x) from x and y.
template <Expr (*slope)(GradientContext&, Expr x, Expr y)>
void elementwise(GradientContext& c) {
  c.set(0, c.dy() * slope(c, c.in(0), c.out(0)));
}

Expr one_if(Expr condition, Expr like) { return condition.here().cast_like(condition, like); }

Expr abs_slope(GradientContext&, Expr x, Expr) { return call("Sign", x); }
Expr exp_slope(GradientContext&, Expr, Expr y) { return y; }
Expr log_slope(GradientContext&, Expr x, Expr) { return call("Reciprocal", x); }
Expr sqrt_slope(GradientContext&, Expr, Expr y) { return 0.5 / y; }
Expr reciprocal_slope(GradientContext&, Expr, Expr y) { return -square(y); }
Expr sin_slope(GradientContext&, Expr x, Expr) { return call("Cos", x); }
Expr cos_slope(GradientContext&, Expr x, Expr) { return -call("Sin", x); }
Expr tan_slope(GradientContext&, Expr, Expr y) { return 1.0 + square(y); }
Expr asin_slope(GradientContext&, Expr x, Expr) { return 1.0 / call("Sqrt", 1.0 - square(x)); }
Expr acos_slope(GradientContext&, Expr x, Expr) { return -1.0 / call("Sqrt", 1.0 - square(x)); }
Expr atan_slope(GradientContext&, Expr x, Expr) { return 1.0 / (square(x) + 1.0); }
Expr sinh_slope(GradientContext&, Expr x, Expr) { return call("Cosh", x); }
Expr cosh_slope(GradientContext&, Expr x, Expr) { return call("Sinh", x); }
Expr tanh_slope(GradientContext&, Expr, Expr y) { return 1.0 - square(y); }
Expr asinh_slope(GradientContext&, Expr x, Expr) { return 1.0 / call("Sqrt", square(x) + 1.0); }
Expr acosh_slope(GradientContext&, Expr x, Expr) { return 1.0 / call("Sqrt", square(x) - 1.0); }
Expr atanh_slope(GradientContext&, Expr x, Expr) { return 1.0 / (1.0 - square(x)); }
Expr sigmoid_slope(GradientContext&, Expr, Expr y) { return y * (1.0 - y); }
Expr erf_slope(GradientContext&, Expr x, Expr) { return call("Exp", -square(x)) * (2.0 / std::sqrt(kPi)); }
Expr softplus_slope(GradientContext&, Expr x, Expr) { return call("Sigmoid", x); }
Expr softsign_slope(GradientContext&, Expr x, Expr) { return 1.0 / square(call("Abs", x) + 1.0); }
// At a kink, any slope between the two sides would be right; these use the left side's, as training frameworks do.
Expr relu_slope(GradientContext&, Expr x, Expr) { return one_if(call("Greater", x, 0.0), x); }

Expr leaky_slope(GradientContext& c, Expr x, Expr) {
  const double alpha = static_cast<double>(parse<ActivationAttrs>(c).alpha);
  return where(call("Greater", x, 0.0), c.scalar(1), c.scalar(alpha));
}

// x below zero: alpha * (exp(x) - 1), whose slope is y + alpha; at zero alpha.
Expr elu_slope(GradientContext& c, Expr x, Expr y) {
  const double alpha = static_cast<double>(parse<ActivationAttrs>(c).alpha);
  return where(call("Greater", x, 0.0), c.scalar(1), y + alpha);
}

// Source: ONNX Selu-6: gamma * x, and gamma * (alpha * exp(x) - alpha) at and below zero.
Expr selu_slope(GradientContext& c, Expr x, Expr y) {
  const auto attr = parse<ActivationAttrs>(c);
  const double alpha = static_cast<double>(attr.alpha);
  const double gamma = static_cast<double>(attr.gamma);
  return where(call("Greater", x, 0.0), c.scalar(gamma), y + alpha * gamma);
}

// Source: ONNX Celu-12: max(0, x) + min(0, alpha * (exp(x / alpha) - 1)).
Expr celu_slope(GradientContext& c, Expr x, Expr y) {
  const double alpha = static_cast<double>(parse<ActivationAttrs>(c).alpha);
  return where(call("Less", x, 0.0), y / alpha + 1.0, c.scalar(1));
}

Expr thresholded_slope(GradientContext& c, Expr x, Expr) {
  return one_if(call("Greater", x, static_cast<double>(parse<ActivationAttrs>(c).alpha)), x);
}

Expr shrink_slope(GradientContext& c, Expr x, Expr) {
  return one_if(call("Greater", call("Abs", x), static_cast<double>(parse<ShrinkAttrs>(c).lambd)), x);
}

Expr hard_sigmoid_slope(GradientContext& c, Expr x, Expr y) {
  const Expr inside = call("And", call("Greater", y, 0.0), call("Less", y, 1.0));
  return one_if(inside, x) * static_cast<double>(parse<ActivationAttrs>(c).alpha);
}

// x * max(0, min(1, x / 6 + 1 / 2))
Expr hard_swish_slope(GradientContext& c, Expr x, Expr) {
  const Expr inside = where(call("Greater", x, -3.0), x / 3.0 + 0.5, c.scalar(0));
  return where(call("Less", x, 3.0), inside, c.scalar(1));
}

Expr mish_slope(GradientContext&, Expr x, Expr) {
  const Expr t = call("Tanh", call("Softplus", x));
  return t + x * (1.0 - square(t)) * call("Sigmoid", x);
}

// x * sigmoid(alpha * x)
Expr swish_slope(GradientContext& c, Expr x, Expr y) {
  const double alpha = static_cast<double>(parse<ActivationAttrs>(c).alpha);
  const Expr s = call("Sigmoid", x * alpha);
  return s + y * alpha * (1.0 - s);
}

// Source: Hendrycks and Gimpel, "Gaussian error linear units", arXiv:1606.08415: x * Phi(x), and its approximation by tanh.
Expr gelu_slope(GradientContext& c, Expr x, Expr) {
  if (parse<GeluAttrs>(c).tanh()) {
    const double k = std::sqrt(2 / kPi);
    const Expr t = call("Tanh", (x + square(x) * x * 0.044715) * k);
    return (t + 1.0) * 0.5 + x * (1.0 - square(t)) * (square(x) * (3 * 0.044715) + 1.0) * (0.5 * k);
  }
  const Expr below = (call("Erf", x * std::sqrt(0.5)) + 1.0) * 0.5;
  return below + x * call("Exp", square(x) * -0.5) * (1 / std::sqrt(2 * kPi));
}

void negative(GradientContext& c) { c.set(0, -c.dy()); }
void same(GradientContext& c) { c.set(0, c.dy()); }
// Steps: the slope is zero wherever it exists.
void step(GradientContext& c) { c.set(0, c.zeros_like(c.in(0))); }

void cast(GradientContext& c) {
  if (c.is_float(c.in(0))) c.set(0, c.cast_like(c.dy(), c.in(0)));
}

// Attributes before 11, inputs since.
void clip(GradientContext& c) {
  const auto attr = parse<ClipAttrs>(c);
  const Expr x = c.in(0);
  const Expr zero = c.scalar(0);
  Expr low = c.in(1);
  Expr high = c.in(2);
  if (c.version() < 11) {
    if (attr.min) low = c.scalar(static_cast<double>(*attr.min));
    if (attr.max) high = c.scalar(static_cast<double>(*attr.max));
  }
  Expr g = c.dy();
  if (high) {
    const Expr above = call("Greater", x, high);
    c.set_broadcast(2, where(above, g, zero));
    g = where(above, zero, g);
  }
  if (low) {
    const Expr below = call("Less", x, low);
    c.set_broadcast(1, where(below, g, zero));
    g = where(below, zero, g);
  }
  c.set(0, g);
}

// A run that drops elements scales the others by 1 / (1 - ratio), so that the mean stays.
void dropout(GradientContext& c) {
  if (c.version() < 7 && parse<DropoutAttrs>(c).is_test.value_or(0) == 0) c.refuse("its mask is not numeric before opset 7");
  if (c.version() < 12 || !c.has_input(2)) return c.set(0, c.dy());
  const Expr ratio = c.has_input(1) ? c.cast_like(c.in(1), c.in(0)) : c.scalar(0.5);
  const Expr scale = where(c.in(2), 1.0 / (1.0 - ratio), c.scalar(1));
  c.set(0, c.dy() * c.cast_like(c.out(1), c.in(0)) * scale);
}

}  // namespace

void register_gradients_unary(GradientTable& t) {
  t.add("Abs", elementwise<abs_slope>);
  t.add("Exp", elementwise<exp_slope>);
  t.add("Log", elementwise<log_slope>);
  t.add("Sqrt", elementwise<sqrt_slope>);
  t.add("Reciprocal", elementwise<reciprocal_slope>);
  t.add("Sin", elementwise<sin_slope>);
  t.add("Cos", elementwise<cos_slope>);
  t.add("Tan", elementwise<tan_slope>);
  t.add("Asin", elementwise<asin_slope>);
  t.add("Acos", elementwise<acos_slope>);
  t.add("Atan", elementwise<atan_slope>);
  t.add("Sinh", elementwise<sinh_slope>);
  t.add("Cosh", elementwise<cosh_slope>);
  t.add("Tanh", elementwise<tanh_slope>);
  t.add("Asinh", elementwise<asinh_slope>);
  t.add("Acosh", elementwise<acosh_slope>);
  t.add("Atanh", elementwise<atanh_slope>);
  t.add("Sigmoid", elementwise<sigmoid_slope>);
  t.add("Erf", elementwise<erf_slope>);
  t.add("Relu", elementwise<relu_slope>);
  t.add("LeakyRelu", elementwise<leaky_slope>);
  t.add("Elu", elementwise<elu_slope>);
  t.add("Selu", elementwise<selu_slope>);
  t.add("Celu", elementwise<celu_slope>);
  t.add("ThresholdedRelu", elementwise<thresholded_slope>);
  t.add("Shrink", elementwise<shrink_slope>);
  t.add("Softplus", elementwise<softplus_slope>);
  t.add("Softsign", elementwise<softsign_slope>);
  t.add("HardSigmoid", elementwise<hard_sigmoid_slope>);
  t.add("HardSwish", elementwise<hard_swish_slope>);
  t.add("Mish", elementwise<mish_slope>);
  t.add("Swish", elementwise<swish_slope>);
  t.add("Gelu", elementwise<gelu_slope>);
  t.add("Neg", negative);
  t.add("Identity", same);
  t.add({"Floor", "Ceil", "Round", "Sign", "Hardmax"}, step);
  t.add({"Cast", "CastLike"}, cast);
  t.add("Clip", clip);
  t.add("Dropout", dropout);
}

}  // namespace sdx::ops
