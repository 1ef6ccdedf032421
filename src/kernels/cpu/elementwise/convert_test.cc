#include "kernels/cpu/elementwise/convert.h"

#include <gtest/gtest.h>

#include <bit>

#include "support/kernel_problems.h"
#include "tensor/types.h"

namespace sdx::cpu {
namespace {

using test::for_each_isa;
using test::Guarded;

bool same(float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); }

TEST(KernelsConvert, EveryHalfAndBfloat) {
  std::vector<char> raw(2 * 65536 + 1);
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto v = static_cast<std::uint16_t>(i);
    std::memcpy(raw.data() + 1 + 2 * i, &v, 2);
  }
  for_each_isa([&] {
    std::vector<float> h(65536), b(65536);
    half_to_f32(raw.data() + 1, h.data(), 65536);
    bfloat_to_f32(raw.data() + 1, b.data(), 65536);
    for (std::uint32_t i = 0; i < 65536; ++i) {
      const float want = half_to_float(static_cast<std::uint16_t>(i));
      ASSERT_TRUE(std::isnan(want) ? std::isnan(h[i]) : same(h[i], want)) << i;
      ASSERT_TRUE(same(b[i], std::bit_cast<float>(i << 16))) << i;
    }
    std::vector<std::uint16_t> back(65536);
    f32_to_half(h.data(), back.data(), 65536);
    for (std::uint32_t i = 0; i < 65536; ++i) {
      if (!std::isnan(h[i])) {
        ASSERT_EQ(back[i], i);
      }
    }
  });
}

TEST(KernelsConvert, RoundingMatchesTheScalarConversions) {
  std::vector<float> x;
  std::mt19937 rng(1);
  for (int i = 0; i < 200001; ++i) x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(rng())));
  // Neighbourhoods of half's borders: ties, overflow, the subnormal limit.
  for (const float at : {65504.0F, 65520.0F, 6.1035156e-5F, 5.9604645e-8F, 2.9802322e-8F, 1.0F, 2048.0F, 0.0F}) {
    for (int i = -3; i <= 3; ++i) {
      const float v =
          std::bit_cast<float>(std::bit_cast<std::uint32_t>(at) + static_cast<std::uint32_t>(at == 0 ? std::abs(i) : i));
      x.push_back(v);
      x.push_back(-v);
    }
  }
  for (std::uint32_t i = 0; i < 65536; i += 7) x.push_back(half_to_float(static_cast<std::uint16_t>(i)) * 1.00048828125F);
  const auto n = static_cast<std::int64_t>(x.size());
  for_each_isa([&] {
    Guarded<std::uint16_t> h(n, 1), b(n, 3);
    f32_to_half(x.data(), h.data(), n);
    f32_to_bfloat(x.data(), b.data(), n);
    for (std::int64_t i = 0; i < n; ++i) {
      const float v = x[static_cast<std::size_t>(i)];
      if (std::isnan(v)) {
        ASSERT_TRUE(std::isnan(half_to_float(h[i])));
        ASSERT_TRUE(std::isnan(std::bit_cast<float>(static_cast<std::uint32_t>(b[i]) << 16)));
        continue;
      }
      ASSERT_EQ(h[i], float_to_half(v)) << v;
      ASSERT_EQ(b[i], BFloat16(v).bits) << v;
    }
  });
}

// Numbers at the limits of the integer types, halves, and numbers that no integer type holds.
std::vector<double> numbers() {
  std::vector<double> v = {0.0, -0.0,  0.5, -0.5, 0.99,  -0.99, 1.5, -1.5,     127.5,
                           128, 255.9, 256, -129, 65504, 65520, 1e6, 16777217, 33554435};
  for (const double limit : {2147483648.0, 9223372036854775808.0, 4294967296.0}) {
    for (const double d : {-257.0, -1.0, -0.5, 0.0, 0.5, 1.0, 300.0}) {
      v.push_back(limit + d);
      v.push_back(-limit + d);
    }
  }
  for (const double d : {1e19, 1e30, 1e300, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    v.push_back(d);
    v.push_back(-d);
  }
  return v;
}

// If the number does not fit, the lowest number of the type that should hold it (see convert.h).
template <class T, class F>
T cast_plainly(F v) {
  if constexpr (std::is_same_v<T, bool>) {
    return v != 0;
  } else if constexpr (std::is_floating_point_v<F> && std::is_integral_v<T>) {
    using Wide = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
    const long double whole = std::trunc(static_cast<long double>(v));
    const bool fits = whole >= std::numeric_limits<Wide>::min() && whole <= std::numeric_limits<Wide>::max();
    return static_cast<T>(fits ? static_cast<Wide>(whole) : std::numeric_limits<Wide>::min());
  } else {
    return static_cast<T>(v);
  }
}

template <class F>
F number_of(double v) {
  return std::is_floating_point_v<F> ? static_cast<F>(v) : static_cast<F>(cast_plainly<std::int64_t>(v));
}

// Blocks of only small numbers, and with limits among them.
template <class F, class T>
void check_cast() {
  const std::vector<double> special = numbers();
  for (const std::int64_t n : {1, 7, 33, 64, 200, 1500}) {
    for (const bool borders : {false, true}) {
      Guarded<F> x(n, 1);
      Guarded<T> y(n, 3);
      std::mt19937 rng(static_cast<unsigned>(n));
      for (std::int64_t i = 0; i < n; ++i) {
        x[i] = number_of<F>(borders ? special[rng() % special.size()] : static_cast<double>(rng() % 2000) / 4 - 250);
      }
      cast_elements(DataTypeOf<F>::value, DataTypeOf<T>::value, x.data(), y.data(), n);
      for (std::int64_t i = 0; i < n; ++i) {
        const T want = cast_plainly<T>(x[i]);
        if constexpr (std::is_floating_point_v<T>) {
          ASSERT_TRUE(std::isnan(want) ? std::isnan(y[i]) : y[i] == want) << x[i] << " gave " << y[i];
        } else {
          ASSERT_EQ(y[i], want) << x[i];
        }
      }
    }
  }
}

template <class F>
void check_half() {
  const DataType type = DataTypeOf<F>::value;
  const std::vector<double> special = numbers();
  const std::int64_t n = 2100;
  Guarded<F> x(n, 1), back(n, 1);
  Guarded<std::uint16_t> h(n, 3);
  for (std::int64_t i = 0; i < n; ++i)
    x[i] = number_of<F>(i % 2 == 0 ? static_cast<double>(i) : special[static_cast<std::size_t>(i) % special.size()]);
  if (can_cast(type, DataType::float16)) {
    cast_elements(type, DataType::float16, x.data(), h.data(), n);
    for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(h[i], float_to_half(static_cast<float>(x[i]))) << x[i];
  }
  for (std::int64_t i = 0; i < n; ++i) h[i] = static_cast<std::uint16_t>(i * 31);
  cast_elements(DataType::float16, type, h.data(), back.data(), n);
  for (std::int64_t i = 0; i < n; ++i) {
    const F want = cast_plainly<F>(half_to_float(h[i]));
    ASSERT_TRUE(back[i] == want || (want != want && back[i] != back[i])) << h[i];
  }
}

template <class F>
void check_casts_from() {
  if constexpr (!std::is_same_v<F, float>) check_cast<F, float>();
  if constexpr (!std::is_same_v<F, double>) check_cast<F, double>();
  if constexpr (!std::is_same_v<F, std::int32_t>) check_cast<F, std::int32_t>();
  if constexpr (!std::is_same_v<F, std::int64_t>) check_cast<F, std::int64_t>();
  if constexpr (!std::is_same_v<F, std::int8_t>) check_cast<F, std::int8_t>();
  if constexpr (!std::is_same_v<F, std::uint8_t>) check_cast<F, std::uint8_t>();
  if constexpr (!std::is_same_v<F, bool>) check_cast<F, bool>();
  if constexpr (!std::is_same_v<F, float>) check_half<F>();
}

TEST(KernelsConvert, CastsMatchPlainConversions) {
  for_each_isa([] {
    check_casts_from<float>();
    check_casts_from<double>();
    check_casts_from<std::int32_t>();
    check_casts_from<std::int64_t>();
    check_casts_from<std::int8_t>();
    check_casts_from<std::uint8_t>();
    check_casts_from<bool>();
    EXPECT_TRUE(can_cast(DataType::float64, DataType::bfloat16));
    EXPECT_FALSE(can_cast(DataType::float32, DataType::int4));
    EXPECT_FALSE(can_cast(DataType::complex64, DataType::float32));
  });
}

}  // namespace
}  // namespace sdx::cpu
