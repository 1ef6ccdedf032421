#pragma once
// What updates do with the element that is there.

#include <complex>
#include <type_traits>

#include <sdx/array/index.hpp>

#include "ops/tensor/movement.h"
#include "tensor/dispatch.h"

namespace sdx::array::detail {

using UpdateTypes =
    TypeList<float, double, Float16, BFloat16, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
             std::uint32_t, std::uint64_t, bool, std::complex<float>, std::complex<double>>;

template <class T>
inline constexpr bool is_complex_number = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

// NumPy's order of complex numbers.
template <class T>
bool comes_before(const T& a, const T& b) {
  if constexpr (is_complex_number<T>) {
    return a.real() != b.real() ? a.real() < b.real() : a.imag() < b.imag();
  } else {
    return a < b;
  }
}

// Integers wrap around; NaN wins in maximum and minimum.
template <Update kMode, class T>
T updated(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return T(updated<kMode>(static_cast<float>(a), static_cast<float>(b)));
  } else if constexpr (std::is_same_v<T, bool>) {
    return kMode == Update::add || kMode == Update::maximum ? a || b : a && b;
  } else if constexpr (std::is_integral_v<T>) {
    using U = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    if constexpr (kMode == Update::add) return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    if constexpr (kMode == Update::multiply) return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
    return (kMode == Update::maximum) == (a < b) ? b : a;
  } else {
    if constexpr (kMode == Update::add) return a + b;
    if constexpr (kMode == Update::multiply) return a * b;
    if (b != b) return b;
    return (kMode == Update::maximum ? comes_before(a, b) : comes_before(b, a)) ? b : a;
  }
}

// Calls fn(T tag, function of two elements): by size for `set`. Updates are set, add, multiply, maximum and minimum.
template <class F>
void with_update(Update mode, Dtype dtype, const char* what, F&& fn) {
  if (mode == Update::set) {
    return ops::dispatch_unit(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      fn(tag, [](const T&, const T& b) { return b; });
    });
  }
  dispatch(dtype, UpdateTypes{}, what, [&](auto tag) {
    using T = typename decltype(tag)::type;
    switch (mode) {
      case Update::multiply: return fn(tag, [](const T& a, const T& b) { return updated<Update::multiply>(a, b); });
      case Update::maximum: return fn(tag, [](const T& a, const T& b) { return updated<Update::maximum>(a, b); });
      case Update::minimum: return fn(tag, [](const T& a, const T& b) { return updated<Update::minimum>(a, b); });
      default: return fn(tag, [](const T& a, const T& b) { return updated<Update::add>(a, b); });
    }
  });
}

}  // namespace sdx::array::detail
