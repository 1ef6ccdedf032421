// Functions of complex numbers. Branch cuts are those of C99, Annex G. Products and quotients are NumPy's: a product by the
// textbook, a quotient by Smith's method.

#include <cmath>
#include <complex>
#include <limits>
#include <numbers>

#include "kernels/cpu/elements/functions.h"
#include "kernels/cpu/elements/loops.h"

namespace sdx::cpu {
namespace {

template <class T>
using Complex = std::complex<T>;

template <class T>
bool is_nan(Complex<T> z) {
  return std::isnan(z.real()) || std::isnan(z.imag());
}

template <class T>
Complex<T> product(Complex<T> a, Complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

template <class T>
Complex<T> quotient(Complex<T> a, Complex<T> b) {
  const T size_re = std::fabs(b.real()), size_im = std::fabs(b.imag());
  if (size_re >= size_im) {
    if (size_re == 0 && size_im == 0) return {a.real() / size_re, a.imag() / size_im};
    const T ratio = b.imag() / b.real();
    const T scale = T(1) / (b.real() + b.imag() * ratio);
    return {(a.real() + a.imag() * ratio) * scale, (a.imag() - a.real() * ratio) * scale};
  }
  const T ratio = b.real() / b.imag();
  const T scale = T(1) / (b.imag() + b.real() * ratio);
  return {(a.real() * ratio + a.imag()) * scale, (a.imag() * ratio - a.real()) * scale};
}

// For infinite numbers, C's library turns the result with the angle, however large that is; the array API has 1 with the sign of
// the angle.
template <class T>
Complex<T> complex_tanh(Complex<T> z) {
  if (!std::isinf(z.real()) || !std::isfinite(z.imag())) return std::tanh(z);
  return {std::copysign(T(1), z.real()), std::copysign(T(0), z.imag())};
}

// Computes e^z - 1 without losing small results: expm1(x) cos y - 2 sin(y/2)^2 + i e^x sin y.
template <class T>
Complex<T> complex_expm1(Complex<T> z) {
  const T x = z.real(), y = z.imag();
  if (y == 0) return {std::expm1(x) + T(0), y};  // 0 for -0, as the array API has it
  if (!std::isfinite(x) || !std::isfinite(y)) return std::exp(z) - T(1);
  const T half = std::sin(y / 2);
  return {std::expm1(x) * std::cos(y) - 2 * half * half, std::exp(x) * std::sin(y)};
}

template <class T>
Complex<T> complex_log1p(Complex<T> z) {
  const T x = z.real(), y = z.imag();
  if (!std::isfinite(x) || !std::isfinite(y)) return std::log(z);
  const T size = std::max(std::fabs(x), std::fabs(y));
  const T re = size < T(0.5) ? std::log1p(x * (T(2) + x) + y * y) / 2 : std::log(std::hypot(T(1) + x, y));
  return {re, std::atan2(y, T(1) + x)};
}

// Multiplies by repeated squaring; exponent is not 0. Avoids products with 1, which would turn infinities into NaN.
template <class T>
Complex<T> integer_power(Complex<T> base, int exponent) {
  auto left = static_cast<unsigned>(exponent < 0 ? -exponent : exponent);
  for (; (left & 1) == 0; left >>= 1) base = product(base, base);
  Complex<T> result = base;
  while ((left >>= 1) != 0) {
    base = product(base, base);
    if ((left & 1) != 0) result = product(result, base);
  }
  return exponent < 0 ? quotient(Complex<T>(1, 0), result) : result;
}

template <class T>
Complex<T> power(Complex<T> a, Complex<T> b) {
  if (b == Complex<T>(0)) return {1, 0};
  if (a == Complex<T>(0)) {
    constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
    return b.real() > 0 ? Complex<T>(0, 0) : Complex<T>(kNan, kNan);
  }
  if (b.imag() == 0 && std::fabs(b.real()) < 100 && b.real() == std::floor(b.real())) {
    return integer_power(a, static_cast<int>(b.real()));
  }
  return std::pow(a, b);
}

template <class T>
Complex<T> log_add_exp(Complex<T> a, Complex<T> b) {
  if (is_nan(a) || is_nan(b)) return {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::quiet_NaN()};
  const bool first = a.real() > b.real();
  const Complex<T> high = first ? a : b, low = first ? b : a;
  if (std::isinf(high.real()))
    return high.real() < 0 ? high : std::isinf(low.real()) ? std::log(std::exp(low) + std::exp(high)) : high;
  return high + complex_log1p(std::exp(low - high));
}

template <class T>
bool before(Complex<T> a, Complex<T> b, bool or_equal) {
  if (is_nan(a) || is_nan(b)) return false;
  if (a.real() != b.real()) return a.real() < b.real();
  return or_equal ? a.imag() <= b.imag() : a.imag() < b.imag();
}

template <class T>
Complex<T> sign(Complex<T> z) {
  if (z == Complex<T>(0)) return {0, 0};
  const bool far_re = std::isinf(z.real()), far_im = std::isinf(z.imag());
  if (far_re && !far_im) return {std::copysign(T(1), z.real()), 0};
  if (far_im && !far_re) return {0, std::copysign(T(1), z.imag())};
  return z / std::abs(z);
}

template <UnaryFn kFn>
struct Map {
  template <class T>
  static auto apply(Complex<T> z) {
    if constexpr (kFn == UnaryFn::abs) {
      return std::hypot(z.real(), z.imag());
    } else if constexpr (kFn == UnaryFn::real) {
      return z.real();
    } else if constexpr (kFn == UnaryFn::imag) {
      return z.imag();
    } else if constexpr (kFn == UnaryFn::isnan) {
      return static_cast<std::uint8_t>(is_nan(z));
    } else if constexpr (kFn == UnaryFn::isinf) {
      return static_cast<std::uint8_t>(std::isinf(z.real()) || std::isinf(z.imag()));
    } else if constexpr (kFn == UnaryFn::isfinite) {
      return static_cast<std::uint8_t>(std::isfinite(z.real()) && std::isfinite(z.imag()));
    } else if constexpr (kFn == UnaryFn::isposinf) {
      return static_cast<std::uint8_t>(z == Complex<T>(std::numeric_limits<T>::infinity()));
    } else if constexpr (kFn == UnaryFn::isneginf) {
      return static_cast<std::uint8_t>(z == Complex<T>(-std::numeric_limits<T>::infinity()));
    } else {
      return number(z);
    }
  }

 private:
  template <class T>
  static Complex<T> number(Complex<T> z) {
    if constexpr (kFn == UnaryFn::negative) return -z;
    if constexpr (kFn == UnaryFn::square) return product(z, z);
    if constexpr (kFn == UnaryFn::sign) return sign(z);
    if constexpr (kFn == UnaryFn::conjugate) return std::conj(z);
    if constexpr (kFn == UnaryFn::reciprocal) return quotient(Complex<T>(1), z);
    if constexpr (kFn == UnaryFn::round) return {std::nearbyint(z.real()), std::nearbyint(z.imag())};
    if constexpr (kFn == UnaryFn::sqrt) return std::sqrt(z);
    if constexpr (kFn == UnaryFn::rsqrt) return quotient(Complex<T>(1), std::sqrt(z));
    if constexpr (kFn == UnaryFn::exp) return std::exp(z);
    if constexpr (kFn == UnaryFn::expm1) return complex_expm1(z);
    if constexpr (kFn == UnaryFn::log) return std::log(z);
    if constexpr (kFn == UnaryFn::log2) return std::log(z) * (std::numbers::log2e_v<T>);
    if constexpr (kFn == UnaryFn::log10) return std::log(z) * (std::numbers::log10e_v<T>);
    if constexpr (kFn == UnaryFn::log1p) return complex_log1p(z);
    if constexpr (kFn == UnaryFn::sin) return std::sin(z);
    if constexpr (kFn == UnaryFn::cos) return std::cos(z);
    if constexpr (kFn == UnaryFn::tan) return std::tan(z);
    if constexpr (kFn == UnaryFn::arcsin) return std::asin(z);
    if constexpr (kFn == UnaryFn::arccos) return std::acos(z);
    if constexpr (kFn == UnaryFn::arctan) return std::atan(z);
    if constexpr (kFn == UnaryFn::sinh) return std::sinh(z);
    if constexpr (kFn == UnaryFn::cosh) return std::cosh(z);
    if constexpr (kFn == UnaryFn::tanh) return complex_tanh(z);
    if constexpr (kFn == UnaryFn::arcsinh) return std::asinh(z);
    if constexpr (kFn == UnaryFn::arccosh) return std::acosh(z);
    if constexpr (kFn == UnaryFn::arctanh) return std::atanh(z);
  }
};

template <BinaryFn kFn>
struct Pair {
  template <class T>
  static auto apply(Complex<T> a, Complex<T> b) {
    if constexpr (kFn == BinaryFn::equal) {
      return static_cast<std::uint8_t>(a == b);
    } else if constexpr (kFn == BinaryFn::not_equal) {
      return static_cast<std::uint8_t>(!(a == b));
    } else if constexpr (kFn == BinaryFn::less) {
      return static_cast<std::uint8_t>(before(a, b, false));
    } else if constexpr (kFn == BinaryFn::less_equal) {
      return static_cast<std::uint8_t>(before(a, b, true));
    } else if constexpr (kFn == BinaryFn::equal_nan) {
      return static_cast<std::uint8_t>(a == b || (is_nan(a) && is_nan(b)));
    } else {
      return number(a, b);
    }
  }

 private:
  template <class T>
  static Complex<T> number(Complex<T> a, Complex<T> b) {
    if constexpr (kFn == BinaryFn::add) return {a.real() + b.real(), a.imag() + b.imag()};
    if constexpr (kFn == BinaryFn::subtract) return {a.real() - b.real(), a.imag() - b.imag()};
    if constexpr (kFn == BinaryFn::multiply) return product(a, b);
    if constexpr (kFn == BinaryFn::divide) return quotient(a, b);
    if constexpr (kFn == BinaryFn::power) return power(a, b);
    if constexpr (kFn == BinaryFn::maximum) return is_nan(a) || before(b, a, true) ? a : b;
    if constexpr (kFn == BinaryFn::minimum) return is_nan(a) || before(a, b, true) ? a : b;
    if constexpr (kFn == BinaryFn::logaddexp) return log_add_exp(a, b);
  }
};

template <class T, UnaryFn... kFns>
UnaryRow find(UnaryFn fn) {
  UnaryRow row = nullptr;
  ((fn == kFns ? static_cast<void>(row = unary_loop<Map<kFns>, Complex<T>>) : void()), ...);
  return row;
}

template <class T, BinaryFn... kFns>
BinaryRow find(BinaryFn fn) {
  BinaryRow row = nullptr;
  ((fn == kFns ? static_cast<void>(row = binary_loop<Pair<kFns>, Complex<T>>) : void()), ...);
  return row;
}

template <class T>
UnaryRow map_of(UnaryFn fn) {
  using enum UnaryFn;
  return find<T, abs, negative, square, sign, round, sqrt, rsqrt, reciprocal, exp, expm1, log, log2, log10, log1p, sin, cos, tan,
              arcsin, arccos, arctan, sinh, cosh, tanh, arcsinh, arccosh, arctanh, conjugate, real, imag, isnan, isinf, isfinite,
              isposinf, isneginf>(fn);
}

template <class T>
BinaryRow pair_of(BinaryFn fn) {
  using enum BinaryFn;
  return find<T, add, subtract, multiply, divide, power, maximum, minimum, logaddexp, equal, not_equal, less, less_equal,
              equal_nan>(fn);
}

}  // namespace

UnaryRow complex_row(UnaryFn fn, DataType type) {
  return type == DataType::complex64 ? map_of<float>(fn) : type == DataType::complex128 ? map_of<double>(fn) : nullptr;
}

BinaryRow complex_row(BinaryFn fn, DataType type) {
  return type == DataType::complex64 ? pair_of<float>(fn) : type == DataType::complex128 ? pair_of<double>(fn) : nullptr;
}

}  // namespace sdx::cpu
