#pragma once
// Elements as unsigned numbers that have the same order, so that one radix sort serves all types.

#include <bit>
#include <cstdint>
#include <type_traits>

#include "tensor/types.h"

namespace sdx {

// Not for complex numbers.
template <class T>
using SortKey = std::conditional_t<
    sizeof(T) == 1, std::uint8_t,
    std::conditional_t<sizeof(T) == 2, std::uint16_t, std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

template <class T>
inline constexpr SortKey<T> kSortKeyTopBit = static_cast<SortKey<T>>(SortKey<T>{1} << (sizeof(T) * 8 - 1));

template <class T>
bool nan_to_sort(T x) {
  const auto value = static_cast<ComputeType<T>>(x);
  return value != value;
}

// -0 comes before 0.
template <class T>
SortKey<T> sort_key(T x) {
  if constexpr (std::is_same_v<T, bool>) {
    return x ? 1 : 0;
  } else if constexpr (std::is_integral_v<T>) {
    const auto bits = static_cast<SortKey<T>>(x);
    return std::is_signed_v<T> ? static_cast<SortKey<T>>(bits ^ kSortKeyTopBit<T>) : bits;
  } else {
    // Negative numbers with all bits turned come before positive ones with the sign turned. Any NaN comes last.
    if (nan_to_sort(x)) return static_cast<SortKey<T>>(~SortKey<T>{0});
    const auto bits = std::bit_cast<SortKey<T>>(x);
    return static_cast<SortKey<T>>((bits & kSortKeyTopBit<T>) != 0 ? ~bits : bits | kSortKeyTopBit<T>);
  }
}

template <class T>
T of_sort_key(SortKey<T> key) {
  if constexpr (std::is_same_v<T, bool>) {
    return key != 0;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(std::is_signed_v<T> ? key ^ kSortKeyTopBit<T> : key);
  } else {
    return std::bit_cast<T>(static_cast<SortKey<T>>((key & kSortKeyTopBit<T>) != 0 ? key ^ kSortKeyTopBit<T> : ~key));
  }
}

}  // namespace sdx
