// Exponents, logarithms, sigmoid and the error function. ONNX Exp-13, Log-13, Sigmoid-13, Erf-13.

#include <sdx/array.hpp>

#include <numbers>

#include "array/ops/elements.h"

namespace sdx::array {
namespace detail {
namespace {

std::vector<array> exp_vjp(const VjpCall& c) { return {multiply(c.of_outputs[0], conjugate(c.outputs[0]))}; }

std::vector<array> expm1_vjp(const VjpCall& c) {
  return {multiply(c.of_outputs[0], conjugate(add(c.outputs[0], constant_like(c.outputs[0], 1))))};
}

// Returns the gradient g / (x * scale) of a logarithm, where `scale` is the natural logarithm of its base.
std::vector<array> over_input(const VjpCall& c, double scale) {
  return {divide(c.of_outputs[0], conjugate(multiply(c.inputs[0], constant_like(c.inputs[0], scale))))};
}

std::vector<array> log_vjp(const VjpCall& c) { return {divide(c.of_outputs[0], conjugate(c.inputs[0]))}; }
std::vector<array> log2_vjp(const VjpCall& c) { return over_input(c, std::numbers::ln2); }
std::vector<array> log10_vjp(const VjpCall& c) { return over_input(c, std::numbers::ln10); }

std::vector<array> log1p_vjp(const VjpCall& c) {
  return {divide(c.of_outputs[0], conjugate(add(c.inputs[0], constant_like(c.inputs[0], 1))))};
}

std::vector<array> logaddexp_vjp(const VjpCall& c) {
  return gradients(c, [&](std::size_t i) {
    const array share = is_complex(c.inputs[0].dtype()) ? exp(subtract(c.inputs[i], c.outputs[0]))
                                                        : sigmoid(subtract(c.inputs[i], c.inputs[1 - i]));
    return multiply(c.of_outputs[0], conjugate(share));
  });
}

std::vector<array> sigmoid_vjp(const VjpCall& c) {
  const array& y = c.outputs[0];
  return {multiply(c.of_outputs[0], multiply(y, subtract(constant_like(y, 1), y)))};
}

std::vector<array> erf_vjp(const VjpCall& c) {
  const array& x = c.inputs[0];
  return {multiply(c.of_outputs[0], multiply(constant_like(x, 2 * std::numbers::inv_sqrtpi), exp(negative(square(x)))))};
}

std::vector<array> erfinv_vjp(const VjpCall& c) {
  const array& y = c.outputs[0];
  return {multiply(c.of_outputs[0], multiply(constant_like(y, 0.5 / std::numbers::inv_sqrtpi), exp(square(y))))};
}

const Kind kExp{.name = "exp", .emit = emit_map<UnaryFn::exp>, .vjp = exp_vjp, .elementwise = true};
const Kind kExpm1{.name = "expm1", .emit = emit_map<UnaryFn::expm1>, .vjp = expm1_vjp, .elementwise = true};
const Kind kLog{.name = "log", .emit = emit_map<UnaryFn::log>, .vjp = log_vjp, .elementwise = true};
const Kind kLog2{.name = "log2", .emit = emit_map<UnaryFn::log2>, .vjp = log2_vjp, .elementwise = true};
const Kind kLog10{.name = "log10", .emit = emit_map<UnaryFn::log10>, .vjp = log10_vjp, .elementwise = true};
const Kind kLog1p{.name = "log1p", .emit = emit_map<UnaryFn::log1p>, .vjp = log1p_vjp, .elementwise = true};
const Kind kLogaddexp{.name = "logaddexp", .emit = emit_pair<BinaryFn::logaddexp>, .vjp = logaddexp_vjp, .elementwise = true};
const Kind kSigmoid{.name = "sigmoid", .emit = emit_map<UnaryFn::sigmoid>, .vjp = sigmoid_vjp, .elementwise = true};
const Kind kErf{.name = "erf", .emit = emit_map<UnaryFn::erf>, .vjp = erf_vjp, .elementwise = true};
const Kind kErfinv{.name = "erfinv", .emit = emit_map<UnaryFn::erfinv>, .vjp = erfinv_vjp, .elementwise = true};

array of_real(const Kind& kind, const array& a, const StreamOrDevice& s) {
  refuse_complex(kind.name, a.dtype());
  return of_floats(kind, a, s);
}

}  // namespace
}  // namespace detail

array exp(const array& a, StreamOrDevice s) { return detail::of_floats(detail::kExp, a, s); }
array expm1(const array& a, StreamOrDevice s) { return detail::of_floats(detail::kExpm1, a, s); }
array log(const array& a, StreamOrDevice s) { return detail::of_floats(detail::kLog, a, s); }
array log2(const array& a, StreamOrDevice s) { return detail::of_floats(detail::kLog2, a, s); }
array log10(const array& a, StreamOrDevice s) { return detail::of_floats(detail::kLog10, a, s); }
array log1p(const array& a, StreamOrDevice s) { return detail::of_floats(detail::kLog1p, a, s); }
array sigmoid(const array& a, StreamOrDevice s) { return detail::of_real(detail::kSigmoid, a, s); }
array erf(const array& a, StreamOrDevice s) { return detail::of_real(detail::kErf, a, s); }
array erfinv(const array& a, StreamOrDevice s) { return detail::of_real(detail::kErfinv, a, s); }

array logaddexp(const array& a, const array& b, StreamOrDevice s) {
  const Dtype type = detail::at_least_float(detail::promote(a.dtype(), b.dtype()));
  return detail::pair(detail::kLogaddexp, a, b, type, type, s);
}

}  // namespace sdx::array
