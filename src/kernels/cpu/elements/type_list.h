#pragma once
// Calls with the C++ type of an element type.

#include <complex>
#include <cstdint>
#include <type_traits>

#include <sdx/dtype.hpp>

#include "base/error.h"
#include "tensor/types.h"

namespace sdx::cpu {

template <class T>
inline constexpr bool is_complex_v = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;
template <class T>
inline constexpr bool is_half_v = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

template <class T>
struct Tag {
  using type = T;
};

// f(Tag<T>()); booleans come as bool.
template <class F>
decltype(auto) with_type(DataType type, F&& f) {
  switch (type) {
    case DataType::boolean: return f(Tag<bool>());
    case DataType::uint8: return f(Tag<std::uint8_t>());
    case DataType::uint16: return f(Tag<std::uint16_t>());
    case DataType::uint32: return f(Tag<std::uint32_t>());
    case DataType::uint64: return f(Tag<std::uint64_t>());
    case DataType::int8: return f(Tag<std::int8_t>());
    case DataType::int16: return f(Tag<std::int16_t>());
    case DataType::int32: return f(Tag<std::int32_t>());
    case DataType::int64: return f(Tag<std::int64_t>());
    case DataType::float16: return f(Tag<Float16>());
    case DataType::bfloat16: return f(Tag<BFloat16>());
    case DataType::float32: return f(Tag<float>());
    case DataType::float64: return f(Tag<double>());
    case DataType::complex64: return f(Tag<std::complex<float>>());
    case DataType::complex128: return f(Tag<std::complex<double>>());
    default: break;
  }
  fail(ErrorCode::not_implemented, "arrays have no elements of {}", name(type));
}

// The type in which comparisons and arithmetic on T are done.
template <class T>
using Computed = std::conditional_t<is_half_v<T>, float, T>;

template <class T>
Computed<T> load(T x) {
  return static_cast<Computed<T>>(x);
}

template <class T>
bool nan_of(T x) {
  if constexpr (is_half_v<T>) {
    const float f = static_cast<float>(x);
    return f != f;
  } else if constexpr (is_complex_v<T> || std::is_floating_point_v<T>) {
    return x != x;
  } else {
    return false;
  }
}

// Order of elements of one type, NaN apart; complex numbers in lexicographic order.
template <class T>
bool before(T a, T b) {
  if constexpr (is_complex_v<T>) {
    return a.real() != b.real() ? a.real() < b.real() : a.imag() < b.imag();
  } else {
    return load(a) < load(b);
  }
}

}  // namespace sdx::cpu
