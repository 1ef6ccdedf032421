#pragma once
// Elements as unsigned numbers that have the same order, so that one radix sort serves all types.

#include <bit>
#include <cstdint>
#include <type_traits>

#include "array/kernels/type_list.h"

namespace sdx::array::detail {

template <std::size_t kBytes>
struct UnsignedOf;
template <>
struct UnsignedOf<1> {
  using type = std::uint8_t;
};
template <>
struct UnsignedOf<2> {
  using type = std::uint16_t;
};
template <>
struct UnsignedOf<4> {
  using type = std::uint32_t;
};
template <>
struct UnsignedOf<8> {
  using type = std::uint64_t;
};

// Not for complex numbers.
template <class T>
using Key = typename UnsignedOf<sizeof(T)>::type;

template <class T>
inline constexpr Key<T> kTopBit = static_cast<Key<T>>(Key<T>{1} << (sizeof(T) * 8 - 1));

template <class T>
Key<T> key_of(T x) {
  if constexpr (std::is_same_v<T, bool>) {
    return x ? 1 : 0;
  } else if constexpr (std::is_integral_v<T>) {
    const auto bits = static_cast<Key<T>>(x);
    return std::is_signed_v<T> ? static_cast<Key<T>>(bits ^ kTopBit<T>) : bits;
  } else {
    // Negative numbers with all bits turned come before positive ones with the sign turned. Any NaN comes last.
    if (nan_of(x)) return static_cast<Key<T>>(~Key<T>{0});
    const auto bits = std::bit_cast<Key<T>>(x);
    return static_cast<Key<T>>((bits & kTopBit<T>) != 0 ? ~bits : bits | kTopBit<T>);
  }
}

template <class T>
T element_of(Key<T> key) {
  if constexpr (std::is_same_v<T, bool>) {
    return key != 0;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(std::is_signed_v<T> ? key ^ kTopBit<T> : key);
  } else {
    return std::bit_cast<T>(static_cast<Key<T>>((key & kTopBit<T>) != 0 ? key ^ kTopBit<T> : ~key));
  }
}

}  // namespace sdx::array::detail
