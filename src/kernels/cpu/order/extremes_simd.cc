// Plain loops, compiled once per instruction set: the compiler makes vectors of them.

#include "kernels/cpu/order/extremes_simd.h"

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/order/extremes_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/cpu/simd/loops.h"

HWY_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

// NaN displaces any number, and nothing displaces it.
template <bool kLargest, class T>
HWY_INLINE T better(T x, T best) {
  return ((kLargest ? x > best : x < best) | (x != x)) ? x : best;
}

template <bool kLargest, class T>
HWY_NOINLINE void extreme_row(const void* x, std::int64_t n, void* y) {
  const auto* px = static_cast<const T*>(x);
  // Four vectors of 64 bytes, so that comparisons do not wait for each other.
  constexpr std::int64_t kAtOnce = 256 / sizeof(T);
  T best[kAtOnce];
  std::fill_n(best, kAtOnce, px[0]);
  std::int64_t i = 0;
  for (; i + kAtOnce <= n; i += kAtOnce) {
    SDX_INDEPENDENT
    for (std::int64_t k = 0; k < kAtOnce; ++k) best[k] = better<kLargest>(px[i + k], best[k]);
  }
  for (; i < n; ++i) best[0] = better<kLargest>(px[i], best[0]);
  T result = best[0];
  for (const T b : best) result = better<kLargest>(b, result);
  *static_cast<T*>(y) = result;
}

template <bool kLargest, class T>
HWY_NOINLINE void merge_rows(const void* x, std::int64_t n, void* y) {
  const auto* px = static_cast<const T*>(x);
  auto* py = static_cast<T*>(y);
  SDX_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) py[i] = better<kLargest>(px[i], py[i]);
}

template <class T>
HWY_NOINLINE std::int64_t find_first(const void* x, std::int64_t n, const void* value) {
  const auto* px = static_cast<const T*>(x);
  const T wanted = *static_cast<const T*>(value);
  const bool nan = wanted != wanted;
  constexpr std::int64_t kAtOnce = 512;
  const auto matches = [&](T e) { return nan ? e != e : e == wanted; };
  for (std::int64_t i = 0; i < n; i += kAtOnce) {
    const std::int64_t end = std::min(n, i + kAtOnce);
    int found = 0;
    if (nan) {
      for (std::int64_t k = i; k < end; ++k) found |= px[k] != px[k] ? 1 : 0;
    } else {
      for (std::int64_t k = i; k < end; ++k) found |= px[k] == wanted ? 1 : 0;
    }
    if (found == 0) continue;
    for (std::int64_t k = i; k < end; ++k) {
      if (matches(px[k])) return k;
    }
  }
  return 0;
}

template <bool kLargest, class T>
constexpr Extremes kOf{extreme_row<kLargest, T>, merge_rows<kLargest, T>, find_first<T>};

template <bool kLargest>
const Extremes& of(DataType type) {
  static constexpr Extremes kNone{nullptr, nullptr, nullptr};
  switch (type) {
    case DataType::uint8: return kOf<kLargest, std::uint8_t>;
    case DataType::uint16: return kOf<kLargest, std::uint16_t>;
    case DataType::uint32: return kOf<kLargest, std::uint32_t>;
    case DataType::uint64: return kOf<kLargest, std::uint64_t>;
    case DataType::int8: return kOf<kLargest, std::int8_t>;
    case DataType::int16: return kOf<kLargest, std::int16_t>;
    case DataType::int32: return kOf<kLargest, std::int32_t>;
    case DataType::int64: return kOf<kLargest, std::int64_t>;
    case DataType::float32: return kOf<kLargest, float>;
    case DataType::float64: return kOf<kLargest, double>;
    default: return kNone;
  }
}

}  // namespace

const Extremes& extremes_of(DataType type, bool largest) { return largest ? of<true>(type) : of<false>(type); }

}  // namespace sdx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

namespace sdx::cpu {

const Extremes& extremes(DataType type, bool largest) { return SDX_CPU_PICK(extremes_of)(type, largest); }

}  // namespace sdx::cpu
#endif
