// Logical and bitwise functions. ONNX Not-1, And-7, Or-7, Xor-7.

#include <sdx/array.hpp>

#include "array/ops/elements.h"

namespace sdx::array {
namespace detail {
namespace {

const Kind kNot{.name = "logical_not", .emit = emit_map<UnaryFn::logical_not>, .vjp = flat_vjp, .elementwise = true};
const Kind kInvert{.name = "bitwise_invert", .emit = emit_map<UnaryFn::bitwise_invert>, .vjp = flat_vjp, .elementwise = true};
const Kind kAnd{.name = "bitwise_and", .emit = emit_pair<BinaryFn::bitwise_and>, .vjp = flat_vjp, .elementwise = true};
const Kind kOr{.name = "bitwise_or", .emit = emit_pair<BinaryFn::bitwise_or>, .vjp = flat_vjp, .elementwise = true};
const Kind kXor{.name = "bitwise_xor", .emit = emit_pair<BinaryFn::bitwise_xor>, .vjp = flat_vjp, .elementwise = true};
const Kind kLeft{.name = "left_shift", .emit = emit_pair<BinaryFn::left_shift>, .vjp = flat_vjp, .elementwise = true};
const Kind kRight{.name = "right_shift", .emit = emit_pair<BinaryFn::right_shift>, .vjp = flat_vjp, .elementwise = true};

array logical(const Kind& kind, const array& a, const array& b, const StreamOrDevice& s) {
  return pair(kind, a, b, Dtype::boolean, Dtype::boolean, s);
}

array bits(const Kind& kind, const array& a, const array& b, const StreamOrDevice& s) {
  const Dtype type = promote(a.dtype(), b.dtype());
  if (is_inexact(type)) refuse(kind.name, "takes booleans and integers, not {} and {}", name(a.dtype()), name(b.dtype()));
  return pair(kind, a, b, type, type, s);
}

array shift(const Kind& kind, const array& a, const array& b, const StreamOrDevice& s) {
  if (promote(a.dtype(), b.dtype()) != Dtype::boolean) return bits(kind, a, b, s);
  return pair(kind, a, b, Dtype::uint8, Dtype::uint8, s);
}

}  // namespace
}  // namespace detail

array logical_not(const array& a, StreamOrDevice s) { return detail::map(detail::kNot, a, Dtype::boolean, s); }
array logical_and(const array& a, const array& b, StreamOrDevice s) { return detail::logical(detail::kAnd, a, b, s); }
array logical_or(const array& a, const array& b, StreamOrDevice s) { return detail::logical(detail::kOr, a, b, s); }
array logical_xor(const array& a, const array& b, StreamOrDevice s) { return detail::logical(detail::kXor, a, b, s); }

array bitwise_and(const array& a, const array& b, StreamOrDevice s) { return detail::bits(detail::kAnd, a, b, s); }
array bitwise_or(const array& a, const array& b, StreamOrDevice s) { return detail::bits(detail::kOr, a, b, s); }
array bitwise_xor(const array& a, const array& b, StreamOrDevice s) { return detail::bits(detail::kXor, a, b, s); }
array left_shift(const array& a, const array& b, StreamOrDevice s) { return detail::shift(detail::kLeft, a, b, s); }
array right_shift(const array& a, const array& b, StreamOrDevice s) { return detail::shift(detail::kRight, a, b, s); }

array bitwise_invert(const array& a, StreamOrDevice s) {
  if (a.dtype() == Dtype::boolean) return logical_not(a, s);
  if (detail::is_inexact(a.dtype())) detail::refuse("bitwise_invert", "takes booleans and integers, not {}", name(a.dtype()));
  return detail::map(detail::kInvert, a, a.dtype(), s);
}

}  // namespace sdx::array
