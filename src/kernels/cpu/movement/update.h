#pragma once
// Combines updates with existing elements; internal to this folder.

#include <complex>
#include <cstdint>
#include <type_traits>

#include "kernels/cpu/elements/type_list.h"
#include "kernels/cpu/movement/blocks.h"

namespace sdx::cpu {

// Integers wrap around; NaN wins in maximum and minimum; complex numbers are in lexicographic order.
template <UpdateFn kFn, class T>
T updated(const T& a, const T& b) {
  if constexpr (is_half_v<T>) {
    return T(updated<kFn>(static_cast<float>(a), static_cast<float>(b)));
  } else if constexpr (std::is_same_v<T, bool>) {
    return kFn == UpdateFn::add || kFn == UpdateFn::maximum ? a || b : a && b;
  } else if constexpr (kFn == UpdateFn::maximum || kFn == UpdateFn::minimum) {
    return nan_of(b) || (kFn == UpdateFn::maximum ? before(a, b) : before(b, a)) ? b : a;
  } else if constexpr (std::is_integral_v<T>) {
    using U = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    return static_cast<T>(kFn == UpdateFn::add ? static_cast<U>(a) + static_cast<U>(b) : static_cast<U>(a) * static_cast<U>(b));
  } else {
    return kFn == UpdateFn::add ? a + b : a * b;
  }
}

// Calls fn(Tag of the type, function of two elements), for `set` with a type of the same size.
template <class F>
void with_update(UpdateFn fn, DataType type, F&& f) {
  if (fn == UpdateFn::set) {
    const auto second = [](const auto&, const auto& b) { return b; };
    switch (bit_width(type) / 8) {
      case 1: return f(Tag<std::uint8_t>(), second);
      case 2: return f(Tag<std::uint16_t>(), second);
      case 4: return f(Tag<std::uint32_t>(), second);
      case 8: return f(Tag<std::uint64_t>(), second);
      default: return f(Tag<std::complex<double>>(), second);
    }
  }
  with_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    switch (fn) {
      case UpdateFn::multiply: return f(tag, [](const T& a, const T& b) { return updated<UpdateFn::multiply>(a, b); });
      case UpdateFn::maximum: return f(tag, [](const T& a, const T& b) { return updated<UpdateFn::maximum>(a, b); });
      case UpdateFn::minimum: return f(tag, [](const T& a, const T& b) { return updated<UpdateFn::minimum>(a, b); });
      default: return f(tag, [](const T& a, const T& b) { return updated<UpdateFn::add>(a, b); });
    }
  });
}

}  // namespace sdx::cpu
