#include "kernels/cpu/elements/convert.h"

#include <array>

#include "base/thread_pool.h"
#include "kernels/cpu/elements/type_list.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kGrain = 16384;

template <class To, class From>
To converted(From x) {
  if constexpr (is_complex_v<From>) {
    if constexpr (is_complex_v<To>) {
      return To(static_cast<typename To::value_type>(x.real()), static_cast<typename To::value_type>(x.imag()));
    } else if constexpr (std::is_same_v<To, bool>) {
      return x != From(0);
    } else {
      return converted<To>(x.real());
    }
  } else if constexpr (is_complex_v<To>) {
    return To(static_cast<typename To::value_type>(load(x)), 0);
  } else if constexpr (is_half_v<To>) {
    return To(static_cast<float>(load(x)));
  } else if constexpr (std::is_integral_v<To> && !std::is_same_v<To, bool> && !std::is_integral_v<From>) {
    // Numbers that the type cannot hold are converted to int64, and the type keeps the low bits.
    const auto f = static_cast<double>(load(x));
    const bool fits = f > -0x1p63 && f < 0x1p63;
    if (std::is_same_v<To, std::uint64_t> && f >= 0x1p63 && f < 0x1p64) return static_cast<To>(static_cast<std::uint64_t>(f));
    return static_cast<To>(fits ? static_cast<std::int64_t>(f) : std::numeric_limits<std::int64_t>::min());
  } else {
    return static_cast<To>(load(x));
  }
}

}  // namespace

void convert(const Tensor& x, Tensor& y) {
  with_type(x.dtype(), [&](auto from) {
    with_type(y.dtype(), [&](auto to) {
      using From = typename decltype(from)::type;
      using To = typename decltype(to)::type;
      const auto* px = static_cast<const From*>(x.data());
      auto* py = static_cast<To*>(y.mutable_data());
      parallel_for(x.size(), kGrain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) py[i] = converted<To>(px[i]);
      });
    });
  });
}

void to_float8(const Tensor& x, Tensor& y) {
  auto* to = static_cast<std::uint8_t*>(y.mutable_data());
  with_type(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_half_v<T> || std::is_floating_point_v<T>) {
      const auto* from = static_cast<const T*>(x.data());
      parallel_for(x.size(), kGrain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) to[i] = float_to_small(static_cast<float>(load(from[i])), kE4M3FN);
      });
    }
  });
}

void from_float8(const Tensor& x, Tensor& y) {
  static const std::array<float, 256> values = [] {
    std::array<float, 256> made{};
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = small_to_float(static_cast<std::uint8_t>(i), kE4M3FN);
    return made;
  }();
  const auto* from = static_cast<const std::uint8_t*>(x.data());
  with_type(y.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_half_v<T> || std::is_floating_point_v<T>) {
      auto* to = static_cast<T*>(y.mutable_data());
      parallel_for(x.size(), kGrain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) to[i] = static_cast<T>(values[from[i]]);
      });
    }
  });
}

}  // namespace sdx::cpu
