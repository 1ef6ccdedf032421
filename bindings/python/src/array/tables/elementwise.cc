#include "tables.h"

namespace sdx::python::arrays {
namespace {

Dtype result_type(Rest of) {
  std::vector<mx::array> arrays;
  std::optional<Dtype> found;
  for (std::size_t i = 0; i < of.count; ++i) {
    if (is_number(of.items[i])) continue;
    const Dtype one = is_dtype(of.items[i]) ? to_dtype(of.items[i]) : From<mx::array>::get(of.items[i]).dtype();
    found = found ? mx::promote_types(*found, one) : one;
  }
  for (std::size_t i = 0; i < of.count; ++i) {
    if (!is_number(of.items[i])) continue;
    const Dtype one = found ? to_weak(of.items[i], *found).dtype() : to_array(of.items[i]).dtype();
    found = found ? mx::promote_types(*found, one) : one;
  }
  if (!found) raise_value_error("[result_type] At least one array or dtype must be provided.");
  return *found;
}

mx::array from_fp8(const mx::array& x, std::optional<Dtype> dtype, StreamOrDevice s) {
  return mx::from_fp8(x, dtype.value_or(Dtype::bfloat16), s);
}

// Arrays are immutable, so an array that has the type already needs no copy.
mx::array astype(const mx::array& a, Dtype dtype, bool, StreamOrDevice device, StreamOrDevice s) {
  return mx::astype(a, dtype, s.index() == 0 ? device : s);
}

mx::array clip(const mx::array& a, const std::optional<mx::array>& low, const std::optional<mx::array>& high, StreamOrDevice s) {
  return low || high ? mx::clip(a, low, high, s) : a;
}

}  // namespace

std::vector<Definition> elementwise_functions() {
  return {
      def<&mx::abs>("abs(a, /, *, stream=None)"),
      def<&mx::sign>("sign(a, /, *, stream=None)"),
      def<&mx::positive>("positive(a, /, *, stream=None)"),
      def<&mx::negative>("negative(a, /, *, stream=None)"),
      binary<&mx::add>("add(a, b, stream=None)"),
      binary<&mx::subtract>("subtract(a, b, stream=None)"),
      binary<&mx::multiply>("multiply(a, b, stream=None)"),
      binary<&mx::divide>("divide(a, b, stream=None)"),
      binary<&mx::divmod>("divmod(a, b, stream=None)"),
      binary<&mx::floor_divide>("floor_divide(a, b, stream=None)"),
      binary<&mx::remainder>("remainder(a, b, stream=None)"),
      binary<&mx::equal>("equal(a, b, stream=None)"),
      binary<&mx::not_equal>("not_equal(a, b, stream=None)"),
      binary<&mx::less>("less(a, b, stream=None)"),
      binary<&mx::less_equal>("less_equal(a, b, stream=None)"),
      binary<&mx::greater>("greater(a, b, stream=None)"),
      binary<&mx::greater_equal>("greater_equal(a, b, stream=None)"),
      binary<&mx::array_equal>("array_equal(a, b, equal_nan=False, stream=None)"),
      def<&mx::trunc>("trunc(a, /, *, stream=None)"),
      def<&mx::square>("square(a, /, *, stream=None)"),
      def<&mx::sqrt>("sqrt(a, /, *, stream=None)"),
      def<&mx::rsqrt>("rsqrt(a, /, *, stream=None)"),
      def<&mx::reciprocal>("reciprocal(a, /, *, stream=None)"),
      def<&mx::logical_not>("logical_not(a, /, *, stream=None)"),
      binary<&mx::logical_and>("logical_and(a, b, /, *, stream=None)"),
      binary<&mx::logical_or>("logical_or(a, b, /, *, stream=None)"),
      binary<&mx::logical_xor>("logical_xor(a, b, /, *, stream=None)"),
      binary<&mx::logaddexp>("logaddexp(a, b, /, *, stream=None)"),
  };
}

std::vector<Definition> exponent_functions() {
  return {
      def<&mx::exp>("exp(a, /, *, stream=None)"),
      def<&mx::expm1>("expm1(a, /, *, stream=None)"),
      def<&mx::erf>("erf(a, /, *, stream=None)"),
      def<&mx::erfinv>("erfinv(a, /, *, stream=None)"),
      def<&mx::sin>("sin(a, /, *, stream=None)"),
      def<&mx::cos>("cos(a, /, *, stream=None)"),
      def<&mx::tan>("tan(a, /, *, stream=None)"),
      def<&mx::arcsin>("arcsin(a, /, *, stream=None)"),
      def<&mx::arccos>("arccos(a, /, *, stream=None)"),
      def<&mx::arctan>("arctan(a, /, *, stream=None)"),
      binary<&mx::arctan2>("arctan2(a, b, /, *, stream=None)"),
      def<&mx::sinh>("sinh(a, /, *, stream=None)"),
      def<&mx::cosh>("cosh(a, /, *, stream=None)"),
      def<&mx::tanh>("tanh(a, /, *, stream=None)"),
      def<&mx::arcsinh>("arcsinh(a, /, *, stream=None)"),
      def<&mx::arccosh>("arccosh(a, /, *, stream=None)"),
      def<&mx::arctanh>("arctanh(a, /, *, stream=None)"),
      def<&mx::degrees>("degrees(a, /, *, stream=None)"),
      def<&mx::radians>("radians(a, /, *, stream=None)"),
      def<&mx::log>("log(a, /, *, stream=None)"),
      def<&mx::log2>("log2(a, /, *, stream=None)"),
      def<&mx::log10>("log10(a, /, *, stream=None)"),
      def<&mx::log1p>("log1p(a, /, *, stream=None)"),
      def<&mx::sigmoid>("sigmoid(a, /, *, stream=None)"),
      binary<&mx::power>("power(a, b, /, *, stream=None)"),
  };
}

std::vector<Definition> choice_functions() {
  return {
      binary<&mx::isclose>("isclose(a, b, /, rtol=1e-05, atol=1e-08, *, equal_nan=False, stream=None)"),
      binary<&mx::allclose>("allclose(a, b, /, rtol=1e-05, atol=1e-08, *, equal_nan=False, stream=None)"),
      binary<&mx::minimum>("minimum(a, b, /, *, stream=None)"),
      binary<&mx::maximum>("maximum(a, b, /, *, stream=None)"),
      def<&mx::floor>("floor(a, /, *, stream=None)"),
      def<&mx::ceil>("ceil(a, /, *, stream=None)"),
      def<&mx::isnan>("isnan(a, stream=None)"),
      def<&mx::isinf>("isinf(a, stream=None)"),
      def<&mx::isfinite>("isfinite(a, stream=None)"),
      def<&mx::isposinf>("isposinf(a, stream=None)"),
      def<&mx::isneginf>("isneginf(a, stream=None)"),
      def<&clip, 0, 3>("clip(a, /, min|a_min=None, max|a_max=None, *, stream=None)"),
      def<&mx::where, 1, 3>("where(condition, x, y, /, *, stream=None)"),
      def<&mx::nan_to_num>("nan_to_num(a, nan=0, posinf=None, neginf=None, *, stream=None)"),
      def<&mx::round>("round(a, /, decimals=0, stream=None)"),
      binary<&mx::bitwise_and>("bitwise_and(a, b, stream=None)"),
      binary<&mx::bitwise_or>("bitwise_or(a, b, stream=None)"),
      binary<&mx::bitwise_xor>("bitwise_xor(a, b, stream=None)"),
      binary<&mx::left_shift>("left_shift(a, b, stream=None)"),
      binary<&mx::right_shift>("right_shift(a, b, stream=None)"),
      def<&mx::bitwise_invert>("bitwise_invert(a, stream=None)"),
      def<&mx::real>("real(a, /, *, stream=None)"),
      def<&mx::imag>("imag(a, /, *, stream=None)"),
      def<&mx::conjugate>("conjugate(a, *, stream=None)"),
      def<&mx::stop_gradient>("stop_gradient(a, /, *, stream=None)"),
      def<&astype>("astype(a, dtype, /, *, copy=True, device=None, stream=None)"),
      def<&mx::view>("view(a, dtype, stream=None)"),
      def<&from_fp8>("from_fp8(x, dtype=None, *, stream=None)"),
      def<&mx::to_fp8>("to_fp8(x, *, stream=None)"),
      def<&result_type>("result_type(*arrays_and_dtypes)"),
  };
}

}  // namespace sdx::python::arrays
