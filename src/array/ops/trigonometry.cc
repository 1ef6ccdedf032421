// Trigonometric and hyperbolic functions. ONNX Sin-7, Cos-7, Asin-7, Acos-7, Atan-7, Tanh-13.

#include <sdx/array.hpp>

#include <numbers>

#include "array/ops/elements.h"

namespace sdx::array {
namespace detail {
namespace {

array one(const array& like) { return constant_like(like, 1); }

// Returns the gradient where the slope at the input is d.
std::vector<array> times(const VjpCall& c, const array& d) { return {multiply(c.of_outputs[0], conjugate(d))}; }
std::vector<array> over(const VjpCall& c, const array& d) { return {divide(c.of_outputs[0], conjugate(d))}; }

std::vector<array> sin_vjp(const VjpCall& c) { return times(c, cos(c.inputs[0])); }
std::vector<array> cos_vjp(const VjpCall& c) { return times(c, negative(sin(c.inputs[0]))); }
std::vector<array> tan_vjp(const VjpCall& c) { return times(c, add(one(c.outputs[0]), square(c.outputs[0]))); }
std::vector<array> sinh_vjp(const VjpCall& c) { return times(c, cosh(c.inputs[0])); }
std::vector<array> cosh_vjp(const VjpCall& c) { return times(c, sinh(c.inputs[0])); }
std::vector<array> tanh_vjp(const VjpCall& c) { return times(c, subtract(one(c.outputs[0]), square(c.outputs[0]))); }

std::vector<array> arcsin_vjp(const VjpCall& c) { return over(c, sqrt(subtract(one(c.inputs[0]), square(c.inputs[0])))); }
std::vector<array> arccos_vjp(const VjpCall& c) {
  return over(c, negative(sqrt(subtract(one(c.inputs[0]), square(c.inputs[0])))));
}
std::vector<array> arctan_vjp(const VjpCall& c) { return over(c, add(one(c.inputs[0]), square(c.inputs[0]))); }
std::vector<array> arcsinh_vjp(const VjpCall& c) { return over(c, sqrt(add(one(c.inputs[0]), square(c.inputs[0])))); }
// The slope has two roots: one root of the product would leave the branch.
std::vector<array> arccosh_vjp(const VjpCall& c) {
  const array& x = c.inputs[0];
  return over(c, multiply(sqrt(subtract(x, one(x))), sqrt(add(x, one(x)))));
}
std::vector<array> arctanh_vjp(const VjpCall& c) { return over(c, subtract(one(c.inputs[0]), square(c.inputs[0]))); }

std::vector<array> arctan2_vjp(const VjpCall& c) {
  const array &y = c.inputs[0], &x = c.inputs[1];
  return gradients(c, [&](std::size_t i) {
    const array scaled = divide(c.of_outputs[0], add(square(x), square(y)));
    return i == 0 ? multiply(x, scaled) : negative(multiply(y, scaled));
  });
}

const Kind kSin{.name = "sin", .emit = emit_map<UnaryFn::sin>, .vjp = sin_vjp, .elementwise = true};
const Kind kCos{.name = "cos", .emit = emit_map<UnaryFn::cos>, .vjp = cos_vjp, .elementwise = true};
const Kind kTan{.name = "tan", .emit = emit_map<UnaryFn::tan>, .vjp = tan_vjp, .elementwise = true};
const Kind kArcsin{.name = "arcsin", .emit = emit_map<UnaryFn::arcsin>, .vjp = arcsin_vjp, .elementwise = true};
const Kind kArccos{.name = "arccos", .emit = emit_map<UnaryFn::arccos>, .vjp = arccos_vjp, .elementwise = true};
const Kind kArctan{.name = "arctan", .emit = emit_map<UnaryFn::arctan>, .vjp = arctan_vjp, .elementwise = true};
const Kind kArctan2{.name = "arctan2", .emit = emit_pair<BinaryFn::arctan2>, .vjp = arctan2_vjp, .elementwise = true};
const Kind kSinh{.name = "sinh", .emit = emit_map<UnaryFn::sinh>, .vjp = sinh_vjp, .elementwise = true};
const Kind kCosh{.name = "cosh", .emit = emit_map<UnaryFn::cosh>, .vjp = cosh_vjp, .elementwise = true};
const Kind kTanh{.name = "tanh", .emit = emit_map<UnaryFn::tanh>, .vjp = tanh_vjp, .elementwise = true};
const Kind kArcsinh{.name = "arcsinh", .emit = emit_map<UnaryFn::arcsinh>, .vjp = arcsinh_vjp, .elementwise = true};
const Kind kArccosh{.name = "arccosh", .emit = emit_map<UnaryFn::arccosh>, .vjp = arccosh_vjp, .elementwise = true};
const Kind kArctanh{.name = "arctanh", .emit = emit_map<UnaryFn::arctanh>, .vjp = arctanh_vjp, .elementwise = true};

array scaled(const array& a, double by, const StreamOrDevice& s) {
  const array x = as_type(a, at_least_float(a.dtype()), s);
  return multiply(x, constant_like(x, by), s);
}

}  // namespace
}  // namespace detail

array sin(const array& a, StreamOrDevice s) { return detail::of_floats(detail::kSin, a, s); }
array cos(const array& a, StreamOrDevice s) { return detail::of_floats(detail::kCos, a, s); }
array tan(const array& a, StreamOrDevice s) { return detail::of_floats(detail::kTan, a, s); }
array arcsin(const array& a, StreamOrDevice s) { return detail::of_floats(detail::kArcsin, a, s); }
array arccos(const array& a, StreamOrDevice s) { return detail::of_floats(detail::kArccos, a, s); }
array arctan(const array& a, StreamOrDevice s) { return detail::of_floats(detail::kArctan, a, s); }
array sinh(const array& a, StreamOrDevice s) { return detail::of_floats(detail::kSinh, a, s); }
array cosh(const array& a, StreamOrDevice s) { return detail::of_floats(detail::kCosh, a, s); }
array tanh(const array& a, StreamOrDevice s) { return detail::of_floats(detail::kTanh, a, s); }
array arcsinh(const array& a, StreamOrDevice s) { return detail::of_floats(detail::kArcsinh, a, s); }
array arccosh(const array& a, StreamOrDevice s) { return detail::of_floats(detail::kArccosh, a, s); }
array arctanh(const array& a, StreamOrDevice s) { return detail::of_floats(detail::kArctanh, a, s); }

array arctan2(const array& a, const array& b, StreamOrDevice s) {
  const Dtype type = detail::at_least_float(detail::promote(a.dtype(), b.dtype()));
  detail::refuse_complex("arctan2", type);
  return detail::pair(detail::kArctan2, a, b, type, type, s);
}

array degrees(const array& a, StreamOrDevice s) { return detail::scaled(a, 180 / std::numbers::pi, s); }
array radians(const array& a, StreamOrDevice s) { return detail::scaled(a, std::numbers::pi / 180, s); }

}  // namespace sdx::array
