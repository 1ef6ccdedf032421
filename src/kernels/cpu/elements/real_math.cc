// Functions of real numbers and of integers that the compiler makes no vectors of.

#include <cmath>
#include <limits>
#include <numbers>
#include <type_traits>

#include "kernels/cpu/elements/erfinv.h"
#include "kernels/cpu/elements/functions.h"
#include "kernels/cpu/elements/loops.h"

namespace sdx::cpu {
namespace {

template <UnaryFn kFn>
struct RealMap {
  template <class T>
  static T apply(T x) {
    if constexpr (kFn == UnaryFn::exp) return std::exp(x);
    if constexpr (kFn == UnaryFn::expm1) return std::expm1(x);
    if constexpr (kFn == UnaryFn::log) return std::log(x);
    if constexpr (kFn == UnaryFn::log2) return std::log2(x);
    if constexpr (kFn == UnaryFn::log10) return std::log10(x);
    if constexpr (kFn == UnaryFn::log1p) return std::log1p(x);
    if constexpr (kFn == UnaryFn::sin) return std::sin(x);
    if constexpr (kFn == UnaryFn::cos) return std::cos(x);
    if constexpr (kFn == UnaryFn::tan) return std::tan(x);
    if constexpr (kFn == UnaryFn::arcsin) return std::asin(x);
    if constexpr (kFn == UnaryFn::arccos) return std::acos(x);
    if constexpr (kFn == UnaryFn::arctan) return std::atan(x);
    if constexpr (kFn == UnaryFn::sinh) return std::sinh(x);
    if constexpr (kFn == UnaryFn::cosh) return std::cosh(x);
    if constexpr (kFn == UnaryFn::tanh) return std::tanh(x);
    if constexpr (kFn == UnaryFn::arcsinh) return std::asinh(x);
    if constexpr (kFn == UnaryFn::arccosh) return std::acosh(x);
    if constexpr (kFn == UnaryFn::arctanh) return std::atanh(x);
    if constexpr (kFn == UnaryFn::sigmoid) {
      // Neither side overflows.
      const T e = std::exp(-std::fabs(x));
      return (x < 0 ? e : T(1)) / (T(1) + e);
    }
    if constexpr (kFn == UnaryFn::erf) return std::erf(x);
    if constexpr (kFn == UnaryFn::erfinv) return inverse_erf(x);
  }
};

template <class T>
T real_remainder(T a, T b) {
  T r = std::fmod(a, b);
  if (r != 0) return (r < 0) != (b < 0) ? r + b : r;
  return b != 0 ? std::copysign(T(0), b) : r;
}

// Together with remainder(): a = b * floor_divide(a, b) + remainder(a, b), as far as rounding allows.
template <class T>
T real_floor_divide(T a, T b) {
  if (b == 0 || std::isinf(a)) return a / b;
  const T r = std::fmod(a, b);
  const T quotient = (a - r) / b - (r != 0 && (r < 0) != (b < 0) ? T(1) : T(0));
  if (quotient == 0) return std::copysign(T(0), a / b);
  const T whole = std::floor(quotient);
  return quotient - whole > T(0.5) ? whole + T(1) : whole;
}

template <class T>
T log_add_exp(T a, T b) {
  if (a == b) return a + std::numbers::ln2_v<T>;  // infinities too
  const T high = a > b ? a : b;
  const T apart = a > b ? b - a : a - b;
  return std::isnan(apart) ? apart : high + std::log1p(std::exp(apart));
}

template <BinaryFn kFn>
struct RealPair {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (kFn == BinaryFn::floor_divide) return real_floor_divide(a, b);
    if constexpr (kFn == BinaryFn::remainder) return real_remainder(a, b);
    if constexpr (kFn == BinaryFn::fmod) return std::fmod(a, b);
    if constexpr (kFn == BinaryFn::power) return std::pow(a, b);
    if constexpr (kFn == BinaryFn::arctan2) return std::atan2(a, b);
    if constexpr (kFn == BinaryFn::logaddexp) return log_add_exp(a, b);
  }
};

template <class T>
T integer_floor_divide(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return static_cast<T>(-static_cast<std::make_unsigned_t<T>>(a));  // the lowest number stays itself
    const T quotient = static_cast<T>(a / b);
    return static_cast<T>(quotient - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0));
  } else {
    return static_cast<T>(a / b);
  }
}

template <class T>
T integer_remainder(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
    const T r = static_cast<T>(a % b);
    return static_cast<T>(r != 0 && (r < 0) != (b < 0) ? r + b : r);
  } else {
    return static_cast<T>(a % b);
  }
}

template <class T>
T integer_power(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) {
      if (base == 1) return 1;
      return base == -1 ? static_cast<T>(exponent % 2 == 0 ? 1 : -1) : T(0);
    }
  }
  using U = std::conditional_t<(sizeof(T) < 4), std::uint32_t, std::make_unsigned_t<T>>;
  U result = 1, factor = static_cast<U>(base);
  for (auto left = static_cast<std::make_unsigned_t<T>>(exponent); left != 0; left = static_cast<decltype(left)>(left >> 1)) {
    if ((left & 1) != 0) result *= factor;
    factor *= factor;
  }
  return static_cast<T>(result);
}

template <BinaryFn kFn>
struct IntegerPair {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (kFn == BinaryFn::floor_divide) return integer_floor_divide(a, b);
    if constexpr (kFn == BinaryFn::remainder) return integer_remainder(a, b);
    if constexpr (kFn == BinaryFn::power) return integer_power(a, b);
    if constexpr (kFn == BinaryFn::power_saturating) {
      return a == 0 && b < 0 ? std::numeric_limits<T>::max() : integer_power(a, b);
    }
  }
};

template <class T>
UnaryRow map_of(UnaryFn fn) {
  switch (fn) {
    case UnaryFn::exp: return unary_loop<RealMap<UnaryFn::exp>, T>;
    case UnaryFn::expm1: return unary_loop<RealMap<UnaryFn::expm1>, T>;
    case UnaryFn::log: return unary_loop<RealMap<UnaryFn::log>, T>;
    case UnaryFn::log2: return unary_loop<RealMap<UnaryFn::log2>, T>;
    case UnaryFn::log10: return unary_loop<RealMap<UnaryFn::log10>, T>;
    case UnaryFn::log1p: return unary_loop<RealMap<UnaryFn::log1p>, T>;
    case UnaryFn::sin: return unary_loop<RealMap<UnaryFn::sin>, T>;
    case UnaryFn::cos: return unary_loop<RealMap<UnaryFn::cos>, T>;
    case UnaryFn::tan: return unary_loop<RealMap<UnaryFn::tan>, T>;
    case UnaryFn::arcsin: return unary_loop<RealMap<UnaryFn::arcsin>, T>;
    case UnaryFn::arccos: return unary_loop<RealMap<UnaryFn::arccos>, T>;
    case UnaryFn::arctan: return unary_loop<RealMap<UnaryFn::arctan>, T>;
    case UnaryFn::sinh: return unary_loop<RealMap<UnaryFn::sinh>, T>;
    case UnaryFn::cosh: return unary_loop<RealMap<UnaryFn::cosh>, T>;
    case UnaryFn::tanh: return unary_loop<RealMap<UnaryFn::tanh>, T>;
    case UnaryFn::arcsinh: return unary_loop<RealMap<UnaryFn::arcsinh>, T>;
    case UnaryFn::arccosh: return unary_loop<RealMap<UnaryFn::arccosh>, T>;
    case UnaryFn::arctanh: return unary_loop<RealMap<UnaryFn::arctanh>, T>;
    case UnaryFn::sigmoid: return unary_loop<RealMap<UnaryFn::sigmoid>, T>;
    case UnaryFn::erf: return unary_loop<RealMap<UnaryFn::erf>, T>;
    case UnaryFn::erfinv: return unary_loop<RealMap<UnaryFn::erfinv>, T>;
    default: return nullptr;
  }
}

template <class T>
BinaryRow pair_of(BinaryFn fn) {
  switch (fn) {
    case BinaryFn::floor_divide: return binary_loop<RealPair<BinaryFn::floor_divide>, T>;
    case BinaryFn::remainder: return binary_loop<RealPair<BinaryFn::remainder>, T>;
    case BinaryFn::fmod: return binary_loop<RealPair<BinaryFn::fmod>, T>;
    case BinaryFn::power: return binary_loop<RealPair<BinaryFn::power>, T>;
    case BinaryFn::arctan2: return binary_loop<RealPair<BinaryFn::arctan2>, T>;
    case BinaryFn::logaddexp: return binary_loop<RealPair<BinaryFn::logaddexp>, T>;
    default: return nullptr;
  }
}

template <class T>
BinaryRow integer_pair_of(BinaryFn fn) {
  switch (fn) {
    case BinaryFn::floor_divide: return binary_loop<IntegerPair<BinaryFn::floor_divide>, T>;
    case BinaryFn::remainder: return binary_loop<IntegerPair<BinaryFn::remainder>, T>;
    case BinaryFn::power: return binary_loop<IntegerPair<BinaryFn::power>, T>;
    case BinaryFn::power_saturating: return binary_loop<IntegerPair<BinaryFn::power_saturating>, T>;
    default: return nullptr;
  }
}

}  // namespace

UnaryRow real_math_row(UnaryFn fn, DataType type) {
  switch (type) {
    case DataType::float32: return map_of<float>(fn);
    case DataType::float64: return map_of<double>(fn);
    default: return nullptr;
  }
}

BinaryRow real_math_row(BinaryFn fn, DataType type) {
  switch (type) {
    case DataType::uint8: return integer_pair_of<std::uint8_t>(fn);
    case DataType::uint16: return integer_pair_of<std::uint16_t>(fn);
    case DataType::uint32: return integer_pair_of<std::uint32_t>(fn);
    case DataType::uint64: return integer_pair_of<std::uint64_t>(fn);
    case DataType::int8: return integer_pair_of<std::int8_t>(fn);
    case DataType::int16: return integer_pair_of<std::int16_t>(fn);
    case DataType::int32: return integer_pair_of<std::int32_t>(fn);
    case DataType::int64: return integer_pair_of<std::int64_t>(fn);
    case DataType::float32: return pair_of<float>(fn);
    case DataType::float64: return pair_of<double>(fn);
    default: return nullptr;
  }
}

}  // namespace sdx::cpu
