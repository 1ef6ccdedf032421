// Comparisons. ONNX Equal-19, Less-13, LessOrEqual-16, IsNaN-20, IsInf-20.

#include <sdx/array.hpp>

#include "array/ops/elements.h"

namespace sdx::array {
namespace detail {
namespace {

const Kind kEqual{.name = "equal", .emit = emit_pair<BinaryFn::equal>, .vjp = flat_vjp, .elementwise = true};
const Kind kEqualNan{.name = "equal_nan", .emit = emit_pair<BinaryFn::equal_nan>, .vjp = flat_vjp, .elementwise = true};
const Kind kNotEqual{.name = "not_equal", .emit = emit_pair<BinaryFn::not_equal>, .vjp = flat_vjp, .elementwise = true};
const Kind kLess{.name = "less", .emit = emit_pair<BinaryFn::less>, .vjp = flat_vjp, .elementwise = true};
const Kind kLessEqual{.name = "less_equal", .emit = emit_pair<BinaryFn::less_equal>, .vjp = flat_vjp, .elementwise = true};
const Kind kIsnan{.name = "isnan", .emit = emit_map<UnaryFn::isnan>, .vjp = flat_vjp, .elementwise = true};
const Kind kIsinf{.name = "isinf", .emit = emit_map<UnaryFn::isinf>, .vjp = flat_vjp, .elementwise = true};
const Kind kIsfinite{.name = "isfinite", .emit = emit_map<UnaryFn::isfinite>, .vjp = flat_vjp, .elementwise = true};
const Kind kIsposinf{.name = "isposinf", .emit = emit_map<UnaryFn::isposinf>, .vjp = flat_vjp, .elementwise = true};
const Kind kIsneginf{.name = "isneginf", .emit = emit_map<UnaryFn::isneginf>, .vjp = flat_vjp, .elementwise = true};

array compare(const Kind& kind, const array& a, const array& b, const StreamOrDevice& s) {
  return pair(kind, a, b, promote(a.dtype(), b.dtype()), Dtype::boolean, s);
}

array classify(const Kind& kind, const array& a, const StreamOrDevice& s) {
  if (!is_inexact(a.dtype())) return full(a.shape(), array(&kind == &kIsfinite), Dtype::boolean, s);
  return map(kind, a, a.dtype(), Dtype::boolean, s);
}

}  // namespace
}  // namespace detail

array equal(const array& a, const array& b, StreamOrDevice s) { return detail::compare(detail::kEqual, a, b, s); }
array not_equal(const array& a, const array& b, StreamOrDevice s) { return detail::compare(detail::kNotEqual, a, b, s); }
array less(const array& a, const array& b, StreamOrDevice s) { return detail::compare(detail::kLess, a, b, s); }
array less_equal(const array& a, const array& b, StreamOrDevice s) { return detail::compare(detail::kLessEqual, a, b, s); }
array greater(const array& a, const array& b, StreamOrDevice s) { return detail::compare(detail::kLess, b, a, s); }
array greater_equal(const array& a, const array& b, StreamOrDevice s) { return detail::compare(detail::kLessEqual, b, a, s); }

array isnan(const array& a, StreamOrDevice s) { return detail::classify(detail::kIsnan, a, s); }
array isinf(const array& a, StreamOrDevice s) { return detail::classify(detail::kIsinf, a, s); }
array isfinite(const array& a, StreamOrDevice s) { return detail::classify(detail::kIsfinite, a, s); }
array isposinf(const array& a, StreamOrDevice s) { return detail::classify(detail::kIsposinf, a, s); }
array isneginf(const array& a, StreamOrDevice s) { return detail::classify(detail::kIsneginf, a, s); }

array isclose(const array& a, const array& b, double rtol, double atol, bool equal_nan, StreamOrDevice s) {
  // Operands are floats: the difference of two integers may not fit into their type.
  const Dtype common = detail::promote(a.dtype(), b.dtype());
  const Dtype type = detail::is_inexact(common) ? common : Dtype::float64;
  const array x = detail::as_type(a, type, s), y = detail::as_type(b, type, s);
  const array size = abs(y, s);
  const array allowed = add(detail::constant_like(size, atol), multiply(detail::constant_like(size, rtol), size, s), s);
  const array near = less_equal(abs(subtract(x, y, s), s), allowed, s);
  // An infinity is close to itself only.
  array close = logical_or(logical_and(near, isfinite(y, s), s), equal(x, y, s), s);
  if (equal_nan) close = logical_or(close, logical_and(isnan(x, s), isnan(y, s), s), s);
  return close;
}

array allclose(const array& a, const array& b, double rtol, double atol, bool equal_nan, StreamOrDevice s) {
  return all(isclose(a, b, rtol, atol, equal_nan, s), std::nullopt, false, s);
}

array array_equal(const array& a, const array& b, bool equal_nan, StreamOrDevice s) {
  if (a.shape() != b.shape()) return array(false);
  return all(detail::compare(equal_nan ? detail::kEqualNan : detail::kEqual, a, b, s), std::nullopt, false, s);
}

}  // namespace sdx::array
