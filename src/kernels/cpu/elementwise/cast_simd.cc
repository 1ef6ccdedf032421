// Plain loops, compiled once per instruction set: the compilers' vector code for them is memory-bound. Before AVX-512 there are
// no conversions of 64-bit integers: these go through 32 bits if a block's numbers fit.

#include "kernels/cpu/elementwise/cast_simd.h"

#define SDX_PLAIN_LOOPS
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/cast_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/cpu/simd/loops.h"

HWY_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

// Whether int32 holds the truncated number. In float, the lower bound itself is the lowest that fits.
HWY_INLINE bool fits_i32(float v) { return v >= -2147483648.0F && v < 2147483648.0F; }
HWY_INLINE bool fits_i32(double v) { return v > -2147483649.0 && v < 2147483648.0; }
HWY_INLINE bool fits_i32(std::int64_t v) { return v == static_cast<std::int32_t>(v); }
template <class F>
HWY_INLINE bool fits_i64(F v) {
  return v >= F(-9223372036854775808.0) && v < F(9223372036854775808.0);
}

// From 2^64 on 0, below 0 the bits of the int64.
template <class F>
HWY_INLINE std::uint64_t unsigned_of(F v) {
  constexpr F kTop = F(9223372036854775808.0);
  if (v >= kTop) return v >= 2 * kTop ? 0 : static_cast<std::uint64_t>(v);
  return static_cast<std::uint64_t>(fits_i64(v) ? static_cast<std::int64_t>(v) : std::numeric_limits<std::int64_t>::min());
}

template <class T, class F>
HWY_INLINE T cast_one(F v) {
  if constexpr (std::is_same_v<T, bool>) {
    return v != 0;
  } else if constexpr (std::is_same_v<T, std::uint64_t> && std::is_floating_point_v<F>) {
    return unsigned_of(v);
  } else if constexpr (std::is_same_v<T, std::int64_t> && std::is_floating_point_v<F>) {
    return fits_i64(v) ? static_cast<std::int64_t>(v) : std::numeric_limits<std::int64_t>::min();
  } else if constexpr (std::is_integral_v<T> && std::is_floating_point_v<F>) {
    return static_cast<T>(fits_i32(v) ? static_cast<std::int32_t>(v) : std::numeric_limits<std::int32_t>::min());
  } else {
    return static_cast<T>(v);
  }
}

template <class T, class F>
HWY_INLINE void block(const F* x, T* y, std::int64_t n) {
  SDX_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) y[i] = cast_one<T>(x[i]);
}

template <class F, class T>
HWY_NOINLINE void cast_loop(const void* from, void* to, std::int64_t n) {
  const auto* x = static_cast<const F*>(from);
  auto* y = static_cast<T*>(to);
  constexpr bool kWide = (std::is_same_v<F, std::int64_t> && std::is_floating_point_v<T>) ||
                         (std::is_same_v<T, std::int64_t> && std::is_floating_point_v<F>);
  if constexpr (kWide) {
    constexpr std::int64_t kBlock = 64;
    for (; n >= kBlock; n -= kBlock, x += kBlock, y += kBlock) {
      int outside = 0;
      for (std::int64_t i = 0; i < kBlock; ++i) outside |= static_cast<int>(!fits_i32(x[i]));
      if (outside != 0) {
        block(x, y, kBlock);
        continue;
      }
      SDX_INDEPENDENT
      for (std::int64_t i = 0; i < kBlock; ++i) y[i] = static_cast<T>(static_cast<std::int32_t>(x[i]));
    }
  }
  block(x, y, n);
}

HWY_NOINLINE void odd_loop(const void* from, void* to, std::int64_t n) {
  const auto* x = static_cast<const double*>(from);
  auto* y = static_cast<float*>(to);
  SDX_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const auto f = static_cast<float>(x[i]);
    const auto back = static_cast<double>(f);
    auto bits = std::bit_cast<std::uint32_t>(f);
    bits = (bits - static_cast<std::uint32_t>(std::fabs(back) > std::fabs(x[i]))) | 1U;
    y[i] = ((back == x[i]) | (x[i] != x[i])) ? f : std::bit_cast<float>(bits);
  }
}

template <class F>
CastRow row_from(DataType to) {
  switch (to) {
    case DataType::uint64: return std::is_floating_point_v<F> ? cast_loop<F, std::uint64_t> : nullptr;
    case DataType::int16: return std::is_same_v<F, std::int32_t> ? cast_loop<F, std::int16_t> : nullptr;
    case DataType::float32: return cast_loop<F, float>;
    case DataType::float64: return cast_loop<F, double>;
    case DataType::int32: return cast_loop<F, std::int32_t>;
    case DataType::int64: return cast_loop<F, std::int64_t>;
    case DataType::int8: return cast_loop<F, std::int8_t>;
    case DataType::uint8: return cast_loop<F, std::uint8_t>;
    case DataType::boolean: return cast_loop<F, bool>;
    default: return nullptr;
  }
}

}  // namespace

CastRow cast_row_of(DataType from, DataType to) {
  if (from == to) return nullptr;
  switch (from) {
    case DataType::float32: return row_from<float>(to);
    case DataType::float64: return row_from<double>(to);
    case DataType::int32: return row_from<std::int32_t>(to);
    case DataType::int64: return row_from<std::int64_t>(to);
    case DataType::int8: return row_from<std::int8_t>(to);
    case DataType::uint8:
    case DataType::boolean: return row_from<std::uint8_t>(to);
    case DataType::int16: return to == DataType::int32 ? cast_loop<std::int16_t, std::int32_t> : nullptr;
    case DataType::uint16: return to == DataType::int32 ? cast_loop<std::uint16_t, std::int32_t> : nullptr;
    case DataType::uint32: return to == DataType::int64 ? cast_loop<std::uint32_t, std::int64_t> : nullptr;
    case DataType::uint64:
      if (to == DataType::float32) return cast_loop<std::uint64_t, float>;
      return to == DataType::float64 ? cast_loop<std::uint64_t, double> : nullptr;
    default: return nullptr;
  }
}

CastRow odd_row_of() { return odd_loop; }

}  // namespace sdx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

namespace sdx::cpu {

CastRow cast_row(DataType from, DataType to) { return SDX_CPU_PICK(cast_row_of)(from, to); }
CastRow odd_row() { return SDX_CPU_PICK(odd_row_of)(); }

}  // namespace sdx::cpu
#endif
