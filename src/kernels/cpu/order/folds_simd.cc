// Mostly plain loops, compiled once per instruction set: the compiler makes vectors of them.

#include "kernels/cpu/order/folds_simd.h"

#define SDX_PLAIN_LOOPS
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/order/folds_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "kernels/cpu/elements/type_list.h"
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
HWY_NOINLINE std::int64_t find(const void* x, std::int64_t n, const void* value, bool last) {
  const auto* px = static_cast<const T*>(x);
  const T wanted = *static_cast<const T*>(value);
  const bool nan = wanted != wanted;
  const std::int64_t some = std::min<std::int64_t>(n, 512);
  const auto matches = [&](T e) { return nan ? e != e : e == wanted; };
  for (std::int64_t at = 0; at < n; at += some) {
    const std::int64_t i = last ? std::max<std::int64_t>(0, n - at - some) : at, end = std::min(n, i + some);
    int found = 0;
    if (nan) {
      for (std::int64_t k = i; k < end; ++k) found |= px[k] != px[k] ? 1 : 0;
    } else {
      for (std::int64_t k = i; k < end; ++k) found |= px[k] == wanted ? 1 : 0;
    }
    if (found == 0) continue;
    for (std::int64_t k = 0; k < end - i; ++k) {
      const std::int64_t place = last ? end - 1 - k : i + k;
      if (matches(px[place])) return place;
    }
  }
  return 0;
}

template <bool kLargest, bool kLast, class T>
HWY_INLINE void merge_places_of(const T* x, std::int64_t n, T* best, std::uint32_t* at, std::uint32_t place) {
  SDX_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const bool further = kLast ? (kLargest ? x[i] >= best[i] : x[i] <= best[i]) : (kLargest ? x[i] > best[i] : x[i] < best[i]);
    const bool take = further | ((x[i] != x[i]) & (kLast | (best[i] == best[i])));
    best[i] = take ? x[i] : best[i];
    at[i] = take ? place : at[i];
  }
}

template <bool kLargest, class T>
HWY_NOINLINE void merge_places(const void* x, std::int64_t n, void* best, std::uint32_t* at, std::uint32_t place, bool last) {
  const auto* px = static_cast<const T*>(x);
  auto* pb = static_cast<T*>(best);
  last ? merge_places_of<kLargest, true>(px, n, pb, at, place) : merge_places_of<kLargest, false>(px, n, pb, at, place);
}

template <class T>
HWY_NOINLINE std::int64_t next_beyond_of(const void* x, std::int64_t from, std::int64_t n, const void* bound, bool above) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto* px = static_cast<const T*>(x);
  const T b = *static_cast<const T*>(bound);
  const auto bounds = hn::Set(d, b);
  const auto beyond = [&](std::int64_t i) HWY_ATTR {
    const auto v = hn::LoadU(d, px + i);
    // Not within: NaN, and anything where the bound is NaN.
    if constexpr (std::is_floating_point_v<T>) return hn::Not(above ? hn::Le(v, bounds) : hn::Ge(v, bounds));
    return above ? hn::Gt(v, bounds) : hn::Lt(v, bounds);
  };
  for (; from + 4 * lanes <= n; from += 4 * lanes) {
    const auto first = hn::Or(beyond(from), beyond(from + lanes));
    if (!hn::AllFalse(d, hn::Or(first, hn::Or(beyond(from + 2 * lanes), beyond(from + 3 * lanes))))) break;
  }
  while (from < n && (above ? px[from] <= b : px[from] >= b)) ++from;
  return from;
}

template <bool kProduct, class T>
HWY_INLINE T combined(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    return static_cast<T>(kProduct ? x * y : x + y);
  } else {
    return kProduct ? a * b : a + b;
  }
}

// Running results, so that additions do not wait for each other; of floats eight for every instruction set.
template <bool kProduct, class T>
HWY_NOINLINE T block_of_row(const T* x, std::int64_t n) {
  constexpr std::int64_t kAtOnce = std::is_integral_v<T> ? 128 / sizeof(T) : 8;
  T part[kAtOnce];
  std::fill_n(part, kAtOnce, T(kProduct ? 1 : 0));
  std::int64_t i = 0;
  for (; i + kAtOnce <= n; i += kAtOnce) {
    for (std::int64_t k = 0; k < kAtOnce; ++k) part[k] = combined<kProduct>(part[k], x[i + k]);
  }
  for (; i < n; ++i) part[0] = combined<kProduct>(part[0], x[i]);
  for (std::int64_t width = kAtOnce / 2; width > 0; width /= 2) {
    for (std::int64_t k = 0; k < width; ++k) part[k] = combined<kProduct>(part[k], part[k + width]);
  }
  return part[0];
}

template <bool kProduct, class T>
T row_of(const T* x, std::int64_t n) {
  // Sums of so many numbers are summed in turn.
  constexpr std::int64_t kBlock = 128;
  if (std::is_integral_v<T> || n <= kBlock) return block_of_row<kProduct>(x, n);
  const std::int64_t half = n / 2 / 8 * 8;
  return combined<kProduct>(row_of<kProduct>(x, half), row_of<kProduct>(x + half, n - half));
}

template <bool kProduct, class T>
void combine_row(const void* x, std::int64_t n, void* y) {
  *static_cast<T*>(y) = row_of<kProduct>(static_cast<const T*>(x), n);
}

template <bool kProduct, class T>
HWY_NOINLINE void combine_rows(const void* x, std::int64_t n, void* y) {
  const auto* px = static_cast<const T*>(x);
  auto* py = static_cast<T*>(y);
  SDX_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) py[i] = combined<kProduct>(py[i], px[i]);
}

// f(Tag<T>()) for the types that have vectors here; `none` for others.
template <class R, class F>
const R& of_type(DataType type, const R& none, F&& f) {
  switch (type) {
    case DataType::uint8: return f(Tag<std::uint8_t>());
    case DataType::uint16: return f(Tag<std::uint16_t>());
    case DataType::uint32: return f(Tag<std::uint32_t>());
    case DataType::uint64: return f(Tag<std::uint64_t>());
    case DataType::int8: return f(Tag<std::int8_t>());
    case DataType::int16: return f(Tag<std::int16_t>());
    case DataType::int32: return f(Tag<std::int32_t>());
    case DataType::int64: return f(Tag<std::int64_t>());
    case DataType::float32: return f(Tag<float>());
    case DataType::float64: return f(Tag<double>());
    default: return none;
  }
}

// Integers of one width share sums and products.
template <class T>
using Unsigned =
    std::conditional_t<std::is_floating_point_v<T>, T,
                       std::conditional_t<sizeof(T) == 1, std::uint8_t,
                                          std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                                             std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>>;

template <bool kProduct, class T>
constexpr Fold kSum{combine_row<kProduct, T>, combine_rows<kProduct, T>};
template <bool kLargest, class T>
constexpr Fold kExtreme{extreme_row<kLargest, T>, merge_rows<kLargest, T>};
template <bool kLargest, class T>
constexpr Places kPlaces{find<T>, merge_places<kLargest, T>};
template <class T>
constexpr NextBeyond kNext = next_beyond_of<T>;
constexpr Fold kNoFold{nullptr, nullptr};
constexpr Places kNoPlaces{nullptr, nullptr};
constexpr NextBeyond kNoNext = nullptr;

}  // namespace

const Fold& sums_of(DataType type) {
  return of_type(type, kNoFold, [](auto tag) -> const Fold& { return kSum<false, Unsigned<typename decltype(tag)::type>>; });
}
const Fold& products_of(DataType type) {
  return of_type(type, kNoFold, [](auto tag) -> const Fold& { return kSum<true, Unsigned<typename decltype(tag)::type>>; });
}
const Fold& extremes_of(DataType type, bool largest) {
  return of_type(type, kNoFold, [&](auto tag) -> const Fold& {
    using T = typename decltype(tag)::type;
    return largest ? kExtreme<true, T> : kExtreme<false, T>;
  });
}
const Places& places_of(DataType type, bool largest) {
  return of_type(type, kNoPlaces, [&](auto tag) -> const Places& {
    using T = typename decltype(tag)::type;
    return largest ? kPlaces<true, T> : kPlaces<false, T>;
  });
}
const NextBeyond& next_of(DataType type) {
  return of_type(type, kNoNext, [](auto tag) -> const NextBeyond& { return kNext<typename decltype(tag)::type>; });
}

}  // namespace sdx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

namespace sdx::cpu {

const Fold& sums(DataType type) { return SDX_CPU_PICK(sums_of)(type); }
const Fold& products(DataType type) { return SDX_CPU_PICK(products_of)(type); }
const Fold& extremes(DataType type, bool largest) { return SDX_CPU_PICK(extremes_of)(type, largest); }
const Places& places(DataType type, bool largest) { return SDX_CPU_PICK(places_of)(type, largest); }
NextBeyond next_beyond(DataType type) { return SDX_CPU_PICK(next_of)(type); }

}  // namespace sdx::cpu
#endif
