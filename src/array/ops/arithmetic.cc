// Arithmetic on elements. ONNX Add-14, Sub-14, Mul-14, Div-14, Pow-15, Max-13, Min-13, Neg-13, Abs-13, Sqrt-13, Reciprocal-13.

#include <sdx/array.hpp>

#include "array/array_op.h"
#include "array/ops/elements.h"
#include "kernels/cpu/elements/tensors.h"

namespace sdx::array {
namespace detail {
namespace {

std::vector<array> add_vjp(const VjpCall& c) {
  return gradients(c, [&](std::size_t) { return c.of_outputs[0]; });
}

std::vector<array> subtract_vjp(const VjpCall& c) {
  return gradients(c, [&](std::size_t i) { return i == 0 ? c.of_outputs[0] : negative(c.of_outputs[0]); });
}

std::vector<array> multiply_vjp(const VjpCall& c) {
  return gradients(c, [&](std::size_t i) { return multiply(c.of_outputs[0], conjugate(c.inputs[1 - i])); });
}

std::vector<array> divide_vjp(const VjpCall& c) {
  return gradients(c, [&](std::size_t i) {
    const array over = divide(c.of_outputs[0], conjugate(c.inputs[1]));
    return i == 0 ? over : negative(multiply(over, conjugate(c.outputs[0])));
  });
}

std::vector<array> remainder_vjp(const VjpCall& c) {
  return gradients(c, [&](std::size_t i) {
    if (i == 0) return c.of_outputs[0];
    return negative(multiply(c.of_outputs[0], floor_divide(c.inputs[0], c.inputs[1])));
  });
}

std::vector<array> divmod_vjp(const VjpCall& c) {
  return gradients(c, [&](std::size_t i) {
    if (i == 0) return c.of_outputs[1];
    return negative(multiply(c.of_outputs[1], c.outputs[0]));
  });
}

std::vector<array> power_vjp(const VjpCall& c) {
  const array &base = c.inputs[0], &exponent = c.inputs[1], &result = c.outputs[0];
  return gradients(c, [&](std::size_t i) {
    const array zero = constant_like(base, 0);
    if (i == 0) {
      // x^0 is 1 for every x, also for 0, whose power x^-1 is infinite.
      const array slope = multiply(exponent, power(base, subtract(exponent, constant_like(base, 1))));
      return multiply(c.of_outputs[0], conjugate(where(equal(exponent, zero), zero, slope)));
    }
    // 0^y stays 0, although log 0 is infinite.
    const array slope = where(equal(result, zero), zero, multiply(log(base), result));
    return multiply(c.of_outputs[0], conjugate(slope));
  });
}

std::vector<array> maximum_vjp(const VjpCall& c) {
  return gradients(c, [&](std::size_t i) {
    const array first = greater(c.inputs[0], c.inputs[1]);
    const array zero = constant_like(c.of_outputs[0], 0);
    return i == 0 ? where(first, c.of_outputs[0], zero) : where(first, zero, c.of_outputs[0]);
  });
}

std::vector<array> minimum_vjp(const VjpCall& c) {
  return gradients(c, [&](std::size_t i) {
    const array first = less(c.inputs[0], c.inputs[1]);
    const array zero = constant_like(c.of_outputs[0], 0);
    return i == 0 ? where(first, c.of_outputs[0], zero) : where(first, zero, c.of_outputs[0]);
  });
}

std::vector<array> negative_vjp(const VjpCall& c) { return {negative(c.of_outputs[0])}; }

// The absolute value of a complex number is real, and its gradient points in the number's direction.
std::vector<array> abs_vjp(const VjpCall& c) {
  return gradients(c, [&](std::size_t) { return multiply(c.of_outputs[0], sign(c.inputs[0])); });
}

std::vector<array> square_vjp(const VjpCall& c) {
  return {multiply(c.of_outputs[0], multiply(constant_like(c.inputs[0], 2), conjugate(c.inputs[0])))};
}

std::vector<array> sqrt_vjp(const VjpCall& c) {
  const array result = conjugate(c.outputs[0]);
  return {divide(c.of_outputs[0], multiply(constant_like(result, 2), result))};
}

std::vector<array> rsqrt_vjp(const VjpCall& c) {
  const array slope = multiply(constant_like(c.inputs[0], -0.5), divide(c.outputs[0], c.inputs[0]));
  return {multiply(c.of_outputs[0], conjugate(slope))};
}

std::vector<array> reciprocal_vjp(const VjpCall& c) {
  return {negative(multiply(c.of_outputs[0], conjugate(square(c.outputs[0]))))};
}

std::vector<array> sign_vjp(const VjpCall& c) {
  if (!is_complex(c.inputs[0].dtype())) return flat_vjp(c);
  // The gradient is `g` without its part in the number's direction, divided by the absolute value.
  const array &g = c.of_outputs[0], &unit = c.outputs[0];
  const array along = multiply(unit, real(multiply(g, conjugate(unit))));
  return {divide(subtract(g, along), abs(c.inputs[0]))};
}

void emit_square(Emitter& e) {
  if (const char* name = onnx_name(BinaryFn::multiply, e.dtype(0))) return e.result(e.op(name, {e.in(0), e.in(0)}));
  emit_function(e, UnaryFn::square);
}

void emit_rsqrt(Emitter& e) {
  if (e.dtype(0) == Dtype::float32) return e.result(e.op("Reciprocal", {e.op("Sqrt", {e.in(0)})}));
  emit_function(e, UnaryFn::rsqrt);
}

void run_divmod(ops::OpContext& c) {
  const Tensor &a = c.input(0), &b = c.input(1);
  apply(BinaryFn::floor_divide, a, b, result_tensor(c, 0));
  apply(BinaryFn::remainder, a, b, result_tensor(c, 1));
}

void emit_divmod(Emitter& e) { e.results<run_divmod>("DivMod", {e.in(0), e.in(1)}); }

const Kind kAdd{.name = "add", .emit = emit_pair<BinaryFn::add>, .vjp = add_vjp, .elementwise = true};
const Kind kSubtract{.name = "subtract", .emit = emit_pair<BinaryFn::subtract>, .vjp = subtract_vjp, .elementwise = true};
const Kind kMultiply{.name = "multiply", .emit = emit_pair<BinaryFn::multiply>, .vjp = multiply_vjp, .elementwise = true};
const Kind kDivide{.name = "divide", .emit = emit_pair<BinaryFn::divide>, .vjp = divide_vjp, .elementwise = true};
const Kind kFloorDivide{.name = "floor_divide", .emit = emit_pair<BinaryFn::floor_divide>, .vjp = flat_vjp, .elementwise = true};
const Kind kRemainder{.name = "remainder", .emit = emit_pair<BinaryFn::remainder>, .vjp = remainder_vjp, .elementwise = true};
const Kind kDivmod{.name = "divmod", .emit = emit_divmod, .vjp = divmod_vjp, .elementwise = true};
const Kind kPower{.name = "power", .emit = emit_pair<BinaryFn::power>, .vjp = power_vjp, .elementwise = true};
const Kind kMaximum{.name = "maximum", .emit = emit_pair<BinaryFn::maximum>, .vjp = maximum_vjp, .elementwise = true};
const Kind kMinimum{.name = "minimum", .emit = emit_pair<BinaryFn::minimum>, .vjp = minimum_vjp, .elementwise = true};
const Kind kNegative{.name = "negative", .emit = emit_map<UnaryFn::negative>, .vjp = negative_vjp, .elementwise = true};
const Kind kAbs{.name = "abs", .emit = emit_map<UnaryFn::abs>, .vjp = abs_vjp, .elementwise = true};
const Kind kSign{.name = "sign", .emit = emit_map<UnaryFn::sign>, .vjp = sign_vjp, .elementwise = true};
const Kind kSquare{.name = "square", .emit = emit_square, .vjp = square_vjp, .elementwise = true};
const Kind kSqrt{.name = "sqrt", .emit = emit_map<UnaryFn::sqrt>, .vjp = sqrt_vjp, .elementwise = true};
const Kind kRsqrt{.name = "rsqrt", .emit = emit_rsqrt, .vjp = rsqrt_vjp, .elementwise = true};
const Kind kReciprocal{.name = "reciprocal", .emit = emit_map<UnaryFn::reciprocal>, .vjp = reciprocal_vjp, .elementwise = true};

}  // namespace
}  // namespace detail

array add(const array& a, const array& b, StreamOrDevice s) { return detail::pair(detail::kAdd, a, b, s); }
array subtract(const array& a, const array& b, StreamOrDevice s) { return detail::pair(detail::kSubtract, a, b, s); }
array multiply(const array& a, const array& b, StreamOrDevice s) { return detail::pair(detail::kMultiply, a, b, s); }

array divide(const array& a, const array& b, StreamOrDevice s) {
  const Dtype type = detail::at_least_float(detail::promote(a.dtype(), b.dtype()));
  return detail::pair(detail::kDivide, a, b, type, type, s);
}

array floor_divide(const array& a, const array& b, StreamOrDevice s) {
  detail::refuse_complex("floor_divide", detail::promote(a.dtype(), b.dtype()));
  return detail::pair(detail::kFloorDivide, a, b, s);
}

array remainder(const array& a, const array& b, StreamOrDevice s) {
  detail::refuse_complex("remainder", detail::promote(a.dtype(), b.dtype()));
  return detail::pair(detail::kRemainder, a, b, s);
}

std::pair<array, array> divmod(const array& a, const array& b, StreamOrDevice s) {
  const Dtype type = detail::promote(a.dtype(), b.dtype());
  detail::refuse_complex("divmod", type);
  const Shape shape = detail::broadcast("divmod", a.shape(), b.shape());
  const auto made = detail::make_many(detail::kDivmod, {{type, shape}, {type, shape}},
                                      {detail::as_type(a, type, s), detail::as_type(b, type, s)}, {}, s);
  return {made[0], made[1]};
}

array power(const array& a, const array& b, StreamOrDevice s) { return detail::pair(detail::kPower, a, b, s); }
array maximum(const array& a, const array& b, StreamOrDevice s) { return detail::pair(detail::kMaximum, a, b, s); }
array minimum(const array& a, const array& b, StreamOrDevice s) { return detail::pair(detail::kMinimum, a, b, s); }

array negative(const array& a, StreamOrDevice s) {
  if (a.dtype() == Dtype::boolean) detail::refuse("negative", "is not defined for bool: use logical_not");
  return detail::map(detail::kNegative, a, a.dtype(), s);
}

array positive(const array& a, StreamOrDevice) { return a; }

array abs(const array& a, StreamOrDevice s) {
  if (detail::is_unsigned(a.dtype())) return a;
  return detail::map(detail::kAbs, a, a.dtype(), detail::result_type_of(detail::UnaryFn::abs, a.dtype()), s);
}

array sign(const array& a, StreamOrDevice s) { return detail::map(detail::kSign, a, a.dtype(), s); }
array square(const array& a, StreamOrDevice s) { return detail::map(detail::kSquare, a, a.dtype(), s); }
array sqrt(const array& a, StreamOrDevice s) { return detail::map(detail::kSqrt, a, detail::at_least_float(a.dtype()), s); }
array rsqrt(const array& a, StreamOrDevice s) { return detail::map(detail::kRsqrt, a, detail::at_least_float(a.dtype()), s); }
array reciprocal(const array& a, StreamOrDevice s) {
  return detail::map(detail::kReciprocal, a, detail::at_least_float(a.dtype()), s);
}

}  // namespace sdx::array
