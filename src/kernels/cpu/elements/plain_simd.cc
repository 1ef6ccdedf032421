// Plain loops, compiled once per instruction set: the compiler makes vectors of them.

#include "kernels/cpu/elements/plain_simd.h"

#define SDX_PLAIN_LOOPS
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elements/plain_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/cpu/simd/loops.h"

HWY_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

using Byte = std::uint8_t;

// A boolean.
struct Truth {
  Byte byte;
};

// Computed without a sign and at least as wide as int, where wrapping around is defined.
template <class T>
using Wrapping = std::conditional_t<(sizeof(T) < 4), std::uint32_t, std::make_unsigned_t<T>>;

template <class T, class F>
HWY_INLINE T wrapped(T a, T b, F f) {
  using U = Wrapping<T>;
  return static_cast<T>(f(static_cast<U>(a), static_cast<U>(b)));
}

template <BinaryFn kFn, class T>
HWY_INLINE T arithmetic(T a, T b) {
  const auto compute = [](auto x, auto y) {
    if constexpr (kFn == BinaryFn::add) return x + y;
    if constexpr (kFn == BinaryFn::subtract) return x - y;
    if constexpr (kFn == BinaryFn::multiply) return x * y;
  };
  if constexpr (std::is_floating_point_v<T>) {
    return compute(a, b);
  } else {
    return wrapped(a, b, compute);
  }
}

// Numbers of up to 16 bits are exact in float32, those of 32 in float64, and so is the whole part of their quotient; there are no
// instructions that divide several integers.
template <class T>
HWY_INLINE T truncated_quotient(T a, T b) {
  const bool negates = std::is_signed_v<T> && b == static_cast<T>(-1);  // the lowest number stays itself
  const T divisor = ((b == 0) | negates) ? T(1) : b;
  T quotient;
  if constexpr (sizeof(T) == 8) {
    quotient = a / divisor;
  } else if constexpr (sizeof(T) == 4) {
    quotient = static_cast<T>(static_cast<double>(a) / static_cast<double>(divisor));
  } else {
    quotient = static_cast<T>(static_cast<std::int32_t>(static_cast<float>(a) / static_cast<float>(divisor)));
  }
  return negates ? wrapped(T(0), a, [](auto x, auto y) { return x - y; }) : quotient;
}

template <class T>
HWY_INLINE T truncated_rest(T a, T b) {
  const T whole = wrapped(truncated_quotient(a, b), b, [](auto x, auto y) { return x * y; });
  return wrapped(a, whole, [](auto x, auto y) { return x - y; });
}

template <BinaryFn kFn, class T>
HWY_INLINE T larger(T a, T b) {
  const T picked = (kFn == BinaryFn::maximum ? a > b : a < b) ? a : b;
  if constexpr (std::is_floating_point_v<T>) {
    // Signed zeros, which are equal, differ in one bit: maximum(-0, 0) is 0. Said by bits, since GCC makes no vectors of
    // signbit().
    using U = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    const auto x = std::bit_cast<U>(a), y = std::bit_cast<U>(b);
    const T equal = std::bit_cast<T>(kFn == BinaryFn::maximum ? x & y : x | y);
    const T number = a == b ? equal : picked;
    return a != a ? a : number;
  } else {
    return picked;
  }
}

template <BinaryFn kFn, class T>
HWY_INLINE T shifted(T a, T b) {
  using U = std::make_unsigned_t<T>;
  constexpr U kBits = sizeof(T) * 8;
  const U by = static_cast<U>(b);
  if constexpr (kFn == BinaryFn::left_shift) {
    return by < kBits ? static_cast<T>(static_cast<Wrapping<T>>(a) << by) : T(0);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<T>(a >> (by < kBits ? by : kBits - 1));
  } else {
    return by < kBits ? static_cast<T>(a >> by) : T(0);
  }
}

template <BinaryFn kFn, class T>
HWY_INLINE auto combine(T a, T b) {
  if constexpr (kFn == BinaryFn::add || kFn == BinaryFn::subtract || kFn == BinaryFn::multiply) {
    return arithmetic<kFn>(a, b);
  } else if constexpr (kFn == BinaryFn::divide) {
    return a / b;
  } else if constexpr (kFn == BinaryFn::truncated_divide) {
    return truncated_quotient(a, b);
  } else if constexpr (kFn == BinaryFn::fmod) {
    return truncated_rest(a, b);
  } else if constexpr (kFn == BinaryFn::prelu) {
    const T product = arithmetic<BinaryFn::multiply>(a, b);
    return a < 0 ? product : a;
  } else if constexpr (kFn == BinaryFn::maximum || kFn == BinaryFn::minimum) {
    return larger<kFn>(a, b);
  } else if constexpr (kFn == BinaryFn::bitwise_and) {
    return static_cast<T>(a & b);
  } else if constexpr (kFn == BinaryFn::bitwise_or) {
    return static_cast<T>(a | b);
  } else if constexpr (kFn == BinaryFn::bitwise_xor) {
    return static_cast<T>(a ^ b);
  } else if constexpr (kFn == BinaryFn::left_shift || kFn == BinaryFn::right_shift) {
    return shifted<kFn>(a, b);
  } else if constexpr (kFn == BinaryFn::equal) {
    return static_cast<Byte>(a == b);
  } else if constexpr (kFn == BinaryFn::not_equal) {
    return static_cast<Byte>(a != b);
  } else if constexpr (kFn == BinaryFn::less) {
    return static_cast<Byte>(a < b);
  } else if constexpr (kFn == BinaryFn::less_equal) {
    return static_cast<Byte>(a <= b);
  } else {
    return static_cast<Byte>((a == b) | ((a != a) & (b != b)));
  }
}

// The function's result for 0 and 1, which booleans are reduced to.
template <BinaryFn kFn>
HWY_INLINE Byte combine(Truth left, Truth right) {
  const bool a = left.byte != 0, b = right.byte != 0;
  if constexpr (kFn == BinaryFn::bitwise_and) return static_cast<Byte>(a & b);
  if constexpr (kFn == BinaryFn::bitwise_or) return static_cast<Byte>(a | b);
  if constexpr (kFn == BinaryFn::bitwise_xor) return static_cast<Byte>(a != b);
  if constexpr (kFn == BinaryFn::equal) return static_cast<Byte>(a == b);
  if constexpr (kFn == BinaryFn::less) return static_cast<Byte>(!a & b);
  if constexpr (kFn == BinaryFn::less_equal) return static_cast<Byte>(!a | b);
  if constexpr (kFn == BinaryFn::power) return static_cast<Byte>(a | !b);
  if constexpr (kFn == BinaryFn::remainder) return 0;
}

template <BinaryFn kFn, class T>
HWY_NOINLINE void pair_loop(const void* a, std::int64_t a_step, const void* b, std::int64_t b_step, void* y, std::int64_t n) {
  using Out = decltype(combine<kFn>(T{}, T{}));
  const auto* pa = static_cast<const T*>(a);
  const auto* pb = static_cast<const T*>(b);
  auto* py = static_cast<Out*>(y);
  if (a_step != 0 && b_step != 0) {
    SDX_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) py[i] = combine<kFn>(pa[i], pb[i]);
  } else if (a_step != 0) {
    const T right = *pb;
    SDX_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) py[i] = combine<kFn>(pa[i], right);
  } else if (b_step != 0) {
    const T left = *pa;
    SDX_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) py[i] = combine<kFn>(left, pb[i]);
  } else if (n > 0) {
    std::fill_n(py, n, combine<kFn>(*pa, *pb));
  }
}

// The type of the same bits without a sign, for functions of integers that give the same bits with one.
template <class T, bool = std::is_integral_v<T>>
struct WithoutSign {
  using type = std::make_unsigned_t<T>;
};
template <class T>
struct WithoutSign<T, false> {
  using type = T;
};
template <class T>
using Bits = typename WithoutSign<T>::type;

template <class T>
BinaryRow integer_pair(BinaryFn fn) {
  if constexpr (std::is_integral_v<T>) {
    switch (fn) {
      case BinaryFn::bitwise_and: return pair_loop<BinaryFn::bitwise_and, Bits<T>>;
      case BinaryFn::bitwise_or: return pair_loop<BinaryFn::bitwise_or, Bits<T>>;
      case BinaryFn::bitwise_xor: return pair_loop<BinaryFn::bitwise_xor, Bits<T>>;
      case BinaryFn::left_shift: return pair_loop<BinaryFn::left_shift, Bits<T>>;
      case BinaryFn::right_shift: return pair_loop<BinaryFn::right_shift, T>;
      case BinaryFn::truncated_divide: return pair_loop<BinaryFn::truncated_divide, T>;
      case BinaryFn::fmod: return pair_loop<BinaryFn::fmod, T>;
      case BinaryFn::equal_nan: return pair_loop<BinaryFn::equal, Bits<T>>;
      default: return nullptr;
    }
  } else {
    switch (fn) {
      case BinaryFn::divide: return pair_loop<BinaryFn::divide, T>;
      case BinaryFn::equal_nan: return pair_loop<BinaryFn::equal_nan, T>;
      default: return nullptr;
    }
  }
}

template <class T>
BinaryRow pair_of(BinaryFn fn) {
  switch (fn) {
    case BinaryFn::add: return pair_loop<BinaryFn::add, Bits<T>>;
    case BinaryFn::subtract: return pair_loop<BinaryFn::subtract, Bits<T>>;
    case BinaryFn::multiply: return pair_loop<BinaryFn::multiply, Bits<T>>;
    case BinaryFn::maximum: return pair_loop<BinaryFn::maximum, T>;
    case BinaryFn::minimum: return pair_loop<BinaryFn::minimum, T>;
    case BinaryFn::prelu: return pair_loop<BinaryFn::prelu, T>;
    case BinaryFn::equal: return pair_loop<BinaryFn::equal, Bits<T>>;
    case BinaryFn::not_equal: return pair_loop<BinaryFn::not_equal, Bits<T>>;
    case BinaryFn::less: return pair_loop<BinaryFn::less, T>;
    case BinaryFn::less_equal: return pair_loop<BinaryFn::less_equal, T>;
    default: return integer_pair<T>(fn);
  }
}

BinaryRow boolean_pair(BinaryFn fn) {
  switch (fn) {
    case BinaryFn::add:
    case BinaryFn::maximum:
    case BinaryFn::bitwise_or: return pair_loop<BinaryFn::bitwise_or, Truth>;
    case BinaryFn::multiply:
    case BinaryFn::minimum:
    case BinaryFn::floor_divide:
    case BinaryFn::bitwise_and: return pair_loop<BinaryFn::bitwise_and, Truth>;
    case BinaryFn::subtract:
    case BinaryFn::not_equal:
    case BinaryFn::bitwise_xor: return pair_loop<BinaryFn::bitwise_xor, Truth>;
    case BinaryFn::equal:
    case BinaryFn::equal_nan: return pair_loop<BinaryFn::equal, Truth>;
    case BinaryFn::less: return pair_loop<BinaryFn::less, Truth>;
    case BinaryFn::less_equal: return pair_loop<BinaryFn::less_equal, Truth>;
    case BinaryFn::power: return pair_loop<BinaryFn::power, Truth>;
    case BinaryFn::remainder: return pair_loop<BinaryFn::remainder, Truth>;
    default: return nullptr;
  }
}

BinaryRow binary(BinaryFn fn, DataType type) {
  switch (type) {
    case DataType::boolean: return boolean_pair(fn);
    case DataType::uint8: return pair_of<std::uint8_t>(fn);
    case DataType::uint16: return pair_of<std::uint16_t>(fn);
    case DataType::uint32: return pair_of<std::uint32_t>(fn);
    case DataType::uint64: return pair_of<std::uint64_t>(fn);
    case DataType::int8: return pair_of<std::int8_t>(fn);
    case DataType::int16: return pair_of<std::int16_t>(fn);
    case DataType::int32: return pair_of<std::int32_t>(fn);
    case DataType::int64: return pair_of<std::int64_t>(fn);
    case DataType::float32: return pair_of<float>(fn);
    case DataType::float64: return pair_of<double>(fn);
    default: return nullptr;
  }
}

template <UnaryFn kFn, class T>
HWY_INLINE auto map_real(T x) {
  constexpr T kInf = std::numeric_limits<T>::infinity();
  if constexpr (kFn == UnaryFn::abs) {
    return std::fabs(x);
  } else if constexpr (kFn == UnaryFn::negative) {
    return -x;
  } else if constexpr (kFn == UnaryFn::relu) {
    return x < 0 ? T(0) : x;
  } else if constexpr (kFn == UnaryFn::square) {
    return x * x;
  } else if constexpr (kFn == UnaryFn::sign) {
    return x > 0 ? T(1) : x < 0 ? T(-1) : x + T(0);  // -0 becomes 0, NaN stays
  } else if constexpr (kFn == UnaryFn::sqrt) {
    return std::sqrt(x);
  } else if constexpr (kFn == UnaryFn::rsqrt) {
    return T(1) / std::sqrt(x);
  } else if constexpr (kFn == UnaryFn::reciprocal) {
    return T(1) / x;
  } else if constexpr (kFn == UnaryFn::floor) {
    return std::floor(x);
  } else if constexpr (kFn == UnaryFn::ceil) {
    return std::ceil(x);
  } else if constexpr (kFn == UnaryFn::trunc) {
    return std::trunc(x);
  } else if constexpr (kFn == UnaryFn::round) {
    return std::nearbyint(x);
  } else if constexpr (kFn == UnaryFn::isnan) {
    return static_cast<Byte>(x != x);
  } else if constexpr (kFn == UnaryFn::isinf) {
    return static_cast<Byte>((x == kInf) | (x == -kInf));
  } else if constexpr (kFn == UnaryFn::isfinite) {
    return static_cast<Byte>((x < kInf) & (x > -kInf));
  } else if constexpr (kFn == UnaryFn::isposinf) {
    return static_cast<Byte>(x == kInf);
  } else {
    return static_cast<Byte>(x == -kInf);
  }
}

template <UnaryFn kFn, class T>
HWY_INLINE T map_integer(T x) {
  if constexpr (kFn == UnaryFn::abs) {
    return x < 0 ? wrapped(T(0), x, [](auto a, auto b) { return a - b; }) : x;
  } else if constexpr (kFn == UnaryFn::negative) {
    return wrapped(T(0), x, [](auto a, auto b) { return a - b; });
  } else if constexpr (kFn == UnaryFn::relu) {
    return x > 0 ? x : T(0);
  } else if constexpr (kFn == UnaryFn::square) {
    return wrapped(x, x, [](auto a, auto b) { return a * b; });
  } else if constexpr (kFn == UnaryFn::sign) {
    return static_cast<T>((x > 0) - (x < 0));
  } else {
    return static_cast<T>(~x);
  }
}

template <UnaryFn kFn, class T>
HWY_INLINE auto mapped(T x) {
  if constexpr (std::is_same_v<T, Truth>) {
    return static_cast<Byte>(kFn == UnaryFn::logical_not ? x.byte == 0 : x.byte != 0);
  } else if constexpr (std::is_floating_point_v<T>) {
    return map_real<kFn>(x);
  } else {
    return map_integer<kFn>(x);
  }
}

template <UnaryFn kFn, class T>
HWY_NOINLINE void map_loop(const void* x, void* y, std::int64_t n) {
  const auto* px = static_cast<const T*>(x);
  auto* py = static_cast<decltype(mapped<kFn>(T{}))*>(y);
  SDX_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) py[i] = mapped<kFn>(px[i]);
}

template <class T>
UnaryRow real_map(UnaryFn fn) {
  switch (fn) {
    case UnaryFn::abs: return map_loop<UnaryFn::abs, T>;
    case UnaryFn::negative: return map_loop<UnaryFn::negative, T>;
    case UnaryFn::relu: return map_loop<UnaryFn::relu, T>;
    case UnaryFn::square: return map_loop<UnaryFn::square, T>;
    case UnaryFn::sign: return map_loop<UnaryFn::sign, T>;
    case UnaryFn::sqrt: return map_loop<UnaryFn::sqrt, T>;
    case UnaryFn::rsqrt: return map_loop<UnaryFn::rsqrt, T>;
    case UnaryFn::reciprocal: return map_loop<UnaryFn::reciprocal, T>;
    case UnaryFn::floor: return map_loop<UnaryFn::floor, T>;
    case UnaryFn::ceil: return map_loop<UnaryFn::ceil, T>;
    case UnaryFn::trunc: return map_loop<UnaryFn::trunc, T>;
    case UnaryFn::round: return map_loop<UnaryFn::round, T>;
    case UnaryFn::isnan: return map_loop<UnaryFn::isnan, T>;
    case UnaryFn::isinf: return map_loop<UnaryFn::isinf, T>;
    case UnaryFn::isfinite: return map_loop<UnaryFn::isfinite, T>;
    case UnaryFn::isposinf: return map_loop<UnaryFn::isposinf, T>;
    case UnaryFn::isneginf: return map_loop<UnaryFn::isneginf, T>;
    default: return nullptr;
  }
}

template <class T>
UnaryRow integer_map(UnaryFn fn) {
  switch (fn) {
    case UnaryFn::abs: return map_loop<UnaryFn::abs, T>;
    case UnaryFn::negative: return map_loop<UnaryFn::negative, T>;
    case UnaryFn::relu: return map_loop<UnaryFn::relu, T>;
    case UnaryFn::square: return map_loop<UnaryFn::square, T>;
    case UnaryFn::sign: return map_loop<UnaryFn::sign, T>;
    case UnaryFn::bitwise_invert: return map_loop<UnaryFn::bitwise_invert, T>;
    default: return nullptr;
  }
}

UnaryRow boolean_map(UnaryFn fn) {
  switch (fn) {
    case UnaryFn::logical_not:
    case UnaryFn::bitwise_invert: return map_loop<UnaryFn::logical_not, Truth>;
    case UnaryFn::abs:
    case UnaryFn::square:
    case UnaryFn::sign: return map_loop<UnaryFn::abs, Truth>;
    default: return nullptr;
  }
}

UnaryRow unary(UnaryFn fn, DataType type) {
  switch (type) {
    case DataType::boolean: return boolean_map(fn);
    case DataType::uint8: return integer_map<std::uint8_t>(fn);
    case DataType::uint16: return integer_map<std::uint16_t>(fn);
    case DataType::uint32: return integer_map<std::uint32_t>(fn);
    case DataType::uint64: return integer_map<std::uint64_t>(fn);
    case DataType::int8: return integer_map<std::int8_t>(fn);
    case DataType::int16: return integer_map<std::int16_t>(fn);
    case DataType::int32: return integer_map<std::int32_t>(fn);
    case DataType::int64: return integer_map<std::int64_t>(fn);
    case DataType::float32: return real_map<float>(fn);
    case DataType::float64: return real_map<double>(fn);
    default: return nullptr;
  }
}

}  // namespace

const PlainKernels& plain_table() {
  static constexpr PlainKernels kTable{unary, binary};
  return kTable;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const PlainKernels&, plain_kernels, plain_table)

namespace sdx::cpu {

UnaryRow plain_unary_row(UnaryFn fn, DataType type) { return plain_kernels().unary(fn, type); }
BinaryRow plain_binary_row(BinaryFn fn, DataType type) { return plain_kernels().binary(fn, type); }

}  // namespace sdx::cpu
#endif
