// Rounding. ONNX Floor-13, Ceil-13, Round-22's rule.

#include <sdx/array.hpp>

#include <cmath>

#include "array/ops/elements.h"

namespace sdx::array {
namespace detail {
namespace {

const Kind kFloor{.name = "floor", .emit = emit_map<UnaryFn::floor>, .vjp = flat_vjp, .elementwise = true};
const Kind kCeil{.name = "ceil", .emit = emit_map<UnaryFn::ceil>, .vjp = flat_vjp, .elementwise = true};
const Kind kTrunc{.name = "trunc", .emit = emit_map<UnaryFn::trunc>, .vjp = flat_vjp, .elementwise = true};
const Kind kRound{.name = "round", .emit = emit_map<UnaryFn::round>, .vjp = flat_vjp, .elementwise = true};

array whole(const Kind& kind, const array& a, const StreamOrDevice& s) {
  if (!is_inexact(a.dtype())) return a;
  if (&kind != &kRound) refuse_complex(kind.name, a.dtype());
  return map(kind, a, a.dtype(), s);
}

}  // namespace
}  // namespace detail

array floor(const array& a, StreamOrDevice s) { return detail::whole(detail::kFloor, a, s); }
array ceil(const array& a, StreamOrDevice s) { return detail::whole(detail::kCeil, a, s); }
array trunc(const array& a, StreamOrDevice s) { return detail::whole(detail::kTrunc, a, s); }

array round(const array& a, int decimals, StreamOrDevice s) {
  if (decimals == 0 || (decimals > 0 && !detail::is_inexact(a.dtype()))) return detail::whole(detail::kRound, a, s);
  // Integers are rounded to tens and hundreds in float64, which holds them.
  const array x = detail::is_inexact(a.dtype()) ? a : astype(a, Dtype::float64, s);
  const array scale = detail::constant_like(x, std::pow(10.0, std::abs(decimals)));
  const array shifted = decimals > 0 ? multiply(x, scale, s) : divide(x, scale, s);
  const array whole = detail::whole(detail::kRound, shifted, s);
  return detail::as_type(decimals > 0 ? divide(whole, scale, s) : multiply(whole, scale, s), a.dtype(), s);
}

}  // namespace sdx::array
