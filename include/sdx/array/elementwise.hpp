#pragma once
// Operations on elements; operands broadcast as NumPy's do, and types promote as in docs/arrays.md. Integers wrap around. Where a
// function needs fractions (exp, divide, …), booleans and integers count as float32. Names, arguments and defaults are those of
// mlx.core. Errors: Error(invalid_argument) when shapes do not broadcast or a type has no such operation.

#include <optional>
#include <utility>
#include <vector>

#include <sdx/array/array.hpp>

namespace sdx::array {

// Arithmetic.
SDX_API array add(const array& a, const array& b, StreamOrDevice s = {});
SDX_API array subtract(const array& a, const array& b, StreamOrDevice s = {});
SDX_API array multiply(const array& a, const array& b, StreamOrDevice s = {});
SDX_API array divide(const array& a, const array& b, StreamOrDevice s = {});
// Rounds towards negative infinity. Integers: 0 where the divisor is 0.
SDX_API array floor_divide(const array& a, const array& b, StreamOrDevice s = {});
// a - b * floor_divide(a, b): has the sign of b. Integers: 0 where the divisor is 0.
SDX_API array remainder(const array& a, const array& b, StreamOrDevice s = {});
SDX_API std::pair<array, array> divmod(const array& a, const array& b, StreamOrDevice s = {});
// Integers with a negative exponent: 1 / x, truncated.
SDX_API array power(const array& a, const array& b, StreamOrDevice s = {});
SDX_API array maximum(const array& a, const array& b, StreamOrDevice s = {});  // NaN if either is NaN
SDX_API array minimum(const array& a, const array& b, StreamOrDevice s = {});
SDX_API array negative(const array& a, StreamOrDevice s = {});  // not for booleans
SDX_API array positive(const array& a, StreamOrDevice s = {});
SDX_API array abs(const array& a, StreamOrDevice s = {});
SDX_API array sign(const array& a, StreamOrDevice s = {});  // complex: x / |x|
SDX_API array square(const array& a, StreamOrDevice s = {});
SDX_API array sqrt(const array& a, StreamOrDevice s = {});
SDX_API array rsqrt(const array& a, StreamOrDevice s = {});
SDX_API array reciprocal(const array& a, StreamOrDevice s = {});

// Exponents and logarithms.
SDX_API array exp(const array& a, StreamOrDevice s = {});
SDX_API array expm1(const array& a, StreamOrDevice s = {});
SDX_API array log(const array& a, StreamOrDevice s = {});
SDX_API array log2(const array& a, StreamOrDevice s = {});
SDX_API array log10(const array& a, StreamOrDevice s = {});
SDX_API array log1p(const array& a, StreamOrDevice s = {});
SDX_API array logaddexp(const array& a, const array& b, StreamOrDevice s = {});  // log(exp(a) + exp(b))
SDX_API array sigmoid(const array& a, StreamOrDevice s = {});
SDX_API array erf(const array& a, StreamOrDevice s = {});
SDX_API array erfinv(const array& a, StreamOrDevice s = {});

// Angles, in radians.
SDX_API array sin(const array& a, StreamOrDevice s = {});
SDX_API array cos(const array& a, StreamOrDevice s = {});
SDX_API array tan(const array& a, StreamOrDevice s = {});
SDX_API array arcsin(const array& a, StreamOrDevice s = {});
SDX_API array arccos(const array& a, StreamOrDevice s = {});
SDX_API array arctan(const array& a, StreamOrDevice s = {});
SDX_API array arctan2(const array& a, const array& b, StreamOrDevice s = {});
SDX_API array sinh(const array& a, StreamOrDevice s = {});
SDX_API array cosh(const array& a, StreamOrDevice s = {});
SDX_API array tanh(const array& a, StreamOrDevice s = {});
SDX_API array arcsinh(const array& a, StreamOrDevice s = {});
SDX_API array arccosh(const array& a, StreamOrDevice s = {});
SDX_API array arctanh(const array& a, StreamOrDevice s = {});
SDX_API array degrees(const array& a, StreamOrDevice s = {});
SDX_API array radians(const array& a, StreamOrDevice s = {});

// Rounding. Integers stay as they are.
SDX_API array floor(const array& a, StreamOrDevice s = {});
SDX_API array ceil(const array& a, StreamOrDevice s = {});
SDX_API array trunc(const array& a, StreamOrDevice s = {});
SDX_API array round(const array& a, int decimals = 0, StreamOrDevice s = {});  // half to even

// Comparisons: results are boolean. Complex numbers compare by the real part, then by the imaginary part.
SDX_API array equal(const array& a, const array& b, StreamOrDevice s = {});
SDX_API array not_equal(const array& a, const array& b, StreamOrDevice s = {});
SDX_API array less(const array& a, const array& b, StreamOrDevice s = {});
SDX_API array less_equal(const array& a, const array& b, StreamOrDevice s = {});
SDX_API array greater(const array& a, const array& b, StreamOrDevice s = {});
SDX_API array greater_equal(const array& a, const array& b, StreamOrDevice s = {});
SDX_API array isnan(const array& a, StreamOrDevice s = {});
SDX_API array isinf(const array& a, StreamOrDevice s = {});
SDX_API array isfinite(const array& a, StreamOrDevice s = {});
SDX_API array isposinf(const array& a, StreamOrDevice s = {});
SDX_API array isneginf(const array& a, StreamOrDevice s = {});
// |a - b| <= atol + rtol |b|
SDX_API array isclose(const array& a, const array& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false,
                      StreamOrDevice s = {});
SDX_API array allclose(const array& a, const array& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false,
                       StreamOrDevice s = {});
SDX_API array array_equal(const array& a, const array& b, bool equal_nan = false, StreamOrDevice s = {});

// Logic: any type, converted to boolean.
SDX_API array logical_not(const array& a, StreamOrDevice s = {});
SDX_API array logical_and(const array& a, const array& b, StreamOrDevice s = {});
SDX_API array logical_or(const array& a, const array& b, StreamOrDevice s = {});
SDX_API array logical_xor(const array& a, const array& b, StreamOrDevice s = {});

// Bits: booleans and integers. Shifts by the width or more, and by negative numbers, leave 0 (of negative numbers shifted right:
// -1).
SDX_API array bitwise_and(const array& a, const array& b, StreamOrDevice s = {});
SDX_API array bitwise_or(const array& a, const array& b, StreamOrDevice s = {});
SDX_API array bitwise_xor(const array& a, const array& b, StreamOrDevice s = {});
SDX_API array bitwise_invert(const array& a, StreamOrDevice s = {});
SDX_API array left_shift(const array& a, const array& b, StreamOrDevice s = {});
SDX_API array right_shift(const array& a, const array& b, StreamOrDevice s = {});

// Complex numbers. A real number is its own real part; its imaginary part is zero.
SDX_API array real(const array& a, StreamOrDevice s = {});
SDX_API array imag(const array& a, StreamOrDevice s = {});
SDX_API array conjugate(const array& a, StreamOrDevice s = {});
inline array conj(const array& a, StreamOrDevice s = {}) { return conjugate(a, s); }

// Selection.
SDX_API array where(const array& condition, const array& x, const array& y, StreamOrDevice s = {});
SDX_API array clip(const array& a, const std::optional<array>& a_min, const std::optional<array>& a_max, StreamOrDevice s = {});
// Infinities become the largest finite numbers of the type unless replacements are given.
SDX_API array nan_to_num(const array& a, double nan = 0, std::optional<double> posinf = std::nullopt,
                         std::optional<double> neginf = std::nullopt, StreamOrDevice s = {});

// Type conversion. Floats convert to integers by truncation.
SDX_API array astype(const array& a, Dtype dtype, StreamOrDevice s = {});
// The same bytes as elements of another type; the last extent changes with the width.
SDX_API array view(const array& a, Dtype dtype, StreamOrDevice s = {});
// float8 (E4M3, no infinities) stored as bytes; larger numbers saturate.
SDX_API array to_fp8(const array& x, StreamOrDevice s = {});
SDX_API array from_fp8(const array& x, Dtype dtype = Dtype::bfloat16, StreamOrDevice s = {});

// Returns `a` but stops gradients.
SDX_API array stop_gradient(const array& a, StreamOrDevice s = {});
// Returns the inputs, computed after the dependencies.
SDX_API std::vector<array> depends(const std::vector<array>& inputs, const std::vector<array>& dependencies);

namespace detail {
enum class ScalarKind : std::uint8_t { boolean, integer, real };
// The type of a plain number combined with an array: the array's, unless that cannot hold such a number.
SDX_API Dtype weak_type(Dtype array, ScalarKind number);
}  // namespace detail

// A scalar for an operation with `a`: of a's type if that can hold such a number (2 with float16 is float16); a whole number with
// booleans is int32, a fraction with whole numbers float32.
template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
array scalar_like(const array& a, T value) {
  using detail::ScalarKind;
  constexpr ScalarKind kind = std::is_same_v<T, bool>       ? ScalarKind::boolean
                              : std::is_floating_point_v<T> ? ScalarKind::real
                                                            : ScalarKind::integer;
  return array(value, detail::weak_type(a.dtype(), kind));
}

#define SDX_ARRAY_OPERATOR(SYMBOL, FUNCTION)                                              \
  inline array operator SYMBOL(const array& a, const array& b) { return FUNCTION(a, b); } \
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>                   \
  array operator SYMBOL(const array& a, T b) {                                            \
    return FUNCTION(a, scalar_like(a, b));                                                \
  }                                                                                       \
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>                   \
  array operator SYMBOL(T a, const array& b) {                                            \
    return FUNCTION(scalar_like(b, a), b);                                                \
  }
SDX_ARRAY_OPERATOR(+, add)
SDX_ARRAY_OPERATOR(-, subtract)
SDX_ARRAY_OPERATOR(*, multiply)
SDX_ARRAY_OPERATOR(/, divide)
SDX_ARRAY_OPERATOR(%, remainder)
SDX_ARRAY_OPERATOR(==, equal)
SDX_ARRAY_OPERATOR(!=, not_equal)
SDX_ARRAY_OPERATOR(<, less)
SDX_ARRAY_OPERATOR(<=, less_equal)
SDX_ARRAY_OPERATOR(>, greater)
SDX_ARRAY_OPERATOR(>=, greater_equal)
SDX_ARRAY_OPERATOR(&, bitwise_and)
SDX_ARRAY_OPERATOR(|, bitwise_or)
SDX_ARRAY_OPERATOR(^, bitwise_xor)
SDX_ARRAY_OPERATOR(<<, left_shift)
SDX_ARRAY_OPERATOR(>>, right_shift)
SDX_ARRAY_OPERATOR(&&, logical_and)
SDX_ARRAY_OPERATOR(||, logical_or)
#undef SDX_ARRAY_OPERATOR
inline array operator-(const array& a) { return negative(a); }
inline array operator~(const array& a) { return bitwise_invert(a); }
inline array operator!(const array& a) { return logical_not(a); }

}  // namespace sdx::array
