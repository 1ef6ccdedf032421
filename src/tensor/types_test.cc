#include "tensor/types.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace sdx {
namespace {

// The meaning of the bits, from the definition: (-1)^s * 2^(e - bias) * 1.m, and 2^(1 - bias) * 0.m below. No special values.
double by_definition(unsigned bits, int exponent_bits, int mantissa_bits, int bias) {
  const unsigned mantissa = bits & ((1U << mantissa_bits) - 1);
  const int exponent = static_cast<int>((bits >> mantissa_bits) & ((1U << exponent_bits) - 1));
  const double fraction = std::ldexp(static_cast<double>(mantissa), -mantissa_bits);
  const double size = exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1.0 + fraction, exponent - bias);
  return ((bits >> (exponent_bits + mantissa_bits)) & 1U) != 0 ? -size : size;
}

// The finite values of a format by their bits (positive half), ascending.
std::vector<double> positive_values(const SmallFloatFormat& f) {
  const unsigned count = 1U << (f.exponent_bits + f.mantissa_bits);
  unsigned special = 0;  // how many at the top are infinite or NaN
  if (f.has_infinity) special = 1U << f.mantissa_bits;
  if (!f.has_infinity && f.has_nan && !f.unsigned_zero) special = 1;
  std::vector<double> out;
  for (unsigned bits = 0; bits < count - special; ++bits) {
    out.push_back(by_definition(bits, f.exponent_bits, f.mantissa_bits, f.bias));
  }
  return out;
}

// Index of the nearest of `values`, ties to the even index (index parity is mantissa parity).
std::size_t nearest_even(const std::vector<double>& values, double x) {
  const auto it = std::lower_bound(values.begin(), values.end(), x);
  if (it == values.end()) return values.size() - 1;
  const auto above = static_cast<std::size_t>(it - values.begin());
  if (above == 0 || *it == x) return above;
  const double up = *it - x;
  const double down = x - values[above - 1];
  if (up != down) return up < down ? above : above - 1;
  return above % 2 == 0 ? above : above - 1;
}

const std::vector<std::pair<const char*, SmallFloatFormat>> kFormats{
    {"e4m3fn", kE4M3FN}, {"e4m3fnuz", kE4M3FNUZ}, {"e5m2", kE5M2}, {"e5m2fnuz", kE5M2FNUZ},
    {"e2m1", kE2M1},     {"e2m3", kE2M3},         {"e3m2", kE3M2}};

TEST(SmallFloat, EveryFiniteValueReadsAndRoundTrips) {
  for (const auto& [label, f] : kFormats) {
    const std::vector<double> values = positive_values(f);
    const unsigned sign = 1U << (f.exponent_bits + f.mantissa_bits);
    for (unsigned i = 0; i < values.size(); ++i) {
      const auto positive = static_cast<std::uint8_t>(i);
      const auto negative = static_cast<std::uint8_t>(i | sign);
      EXPECT_EQ(static_cast<double>(small_to_float(positive, f)), values[i]) << label << " " << i;
      EXPECT_EQ(float_to_small(static_cast<float>(values[i]), f), positive) << label << " " << i;
      if (i == 0 && f.unsigned_zero) continue;
      EXPECT_EQ(static_cast<double>(small_to_float(negative, f)), -values[i]) << label << " " << i;
      EXPECT_EQ(float_to_small(static_cast<float>(-values[i]), f), negative) << label << " " << i;
    }
  }
}

TEST(SmallFloat, RoundsToNearestEven) {
  for (const auto& [label, f] : kFormats) {
    const std::vector<double> values = positive_values(f);
    const auto expect = [&, label = label, format = f](double x) {
      ASSERT_EQ(float_to_small(static_cast<float>(x), format), nearest_even(values, x)) << label << " " << x;
    };
    for (std::size_t i = 0; i + 1 < values.size(); ++i) {
      const auto middle = static_cast<float>((values[i] + values[i + 1]) / 2);
      expect(static_cast<double>(middle));
      expect(static_cast<double>(std::nextafter(middle, 0.0F)));
      expect(static_cast<double>(std::nextafter(middle, INFINITY)));
    }
  }
}

TEST(SmallFloat, SpecialValues) {
  for (const auto& [label, f] : kFormats) {
    const double most = positive_values(f).back();
    EXPECT_EQ(static_cast<double>(small_to_float(float_to_small(INFINITY, f), f)), most) << label;
    EXPECT_EQ(static_cast<double>(small_to_float(float_to_small(-1e30F, f), f)), -most) << label;
    if (!f.has_nan && !f.has_infinity) continue;
    EXPECT_TRUE(std::isnan(small_to_float(float_to_small(NAN, f), f))) << label;
    const float beyond = small_to_float(float_to_small(1e30F, f, false), f);
    EXPECT_TRUE(f.has_infinity ? std::isinf(beyond) : std::isnan(beyond)) << label;
  }
}

TEST(Half, EveryBitPattern) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const float value = half_to_float(static_cast<std::uint16_t>(bits));
    if ((bits & 0x7C00) == 0x7C00) {
      const bool infinite = (bits & 0x3FF) == 0;
      ASSERT_EQ(std::isinf(value), infinite) << bits;
      ASSERT_EQ(std::isnan(value), !infinite) << bits;
      if (!infinite) continue;
    } else {
      ASSERT_EQ(static_cast<double>(value), by_definition(bits, 5, 10, 15)) << bits;
    }
    ASSERT_EQ(float_to_half(value), bits);
  }
}

TEST(Half, RoundsToNearestEven) {
  std::vector<double> values;
  for (unsigned bits = 0; bits < 0x7C00; ++bits) values.push_back(by_definition(bits, 5, 10, 15));
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    const std::size_t at = random() % (values.size() - 1);
    const auto middle = static_cast<float>((values[at] + values[at + 1]) / 2);
    for (const float x : {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, INFINITY)}) {
      ASSERT_EQ(float_to_half(x), nearest_even(values, static_cast<double>(x))) << x;
      ASSERT_EQ(float_to_half(-x), nearest_even(values, static_cast<double>(x)) | 0x8000) << x;
    }
  }
  EXPECT_EQ(float_to_half(65519.0F), 0x7BFF);
  EXPECT_EQ(float_to_half(65520.0F), 0x7C00);  // half way to 2^16
  EXPECT_TRUE(std::isnan(half_to_float(float_to_half(NAN))));
}

TEST(BFloat, EveryBitPatternAndTies) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    BFloat16 b;
    b.bits = static_cast<std::uint16_t>(bits);
    const auto value = static_cast<float>(b);
    if ((bits & 0x7F80) == 0x7F80) {
      ASSERT_EQ(std::isinf(value), (bits & 0x7F) == 0) << bits;
      ASSERT_EQ(std::isnan(static_cast<float>(BFloat16(value))), (bits & 0x7F) != 0) << bits;
      continue;
    }
    ASSERT_EQ(static_cast<double>(value), by_definition(bits, 8, 7, 127)) << bits;
    ASSERT_EQ(BFloat16(value).bits, bits);
    const float tie = std::bit_cast<float>((bits << 16) | 0x8000U);
    ASSERT_EQ(BFloat16(tie).bits, bits + (bits & 1)) << bits;
  }
}

TEST(E8M0, PowersOfTwo) {
  for (unsigned bits = 0; bits < 255; ++bits) {
    const float value = e8m0_to_float(static_cast<std::uint8_t>(bits));
    ASSERT_EQ(static_cast<double>(value), std::ldexp(1.0, static_cast<int>(bits) - 127)) << bits;
    for (const RoundMode mode : {RoundMode::nearest, RoundMode::up, RoundMode::down}) {
      ASSERT_EQ(float_to_e8m0(value, true, mode), bits) << bits;
    }
  }
  EXPECT_TRUE(std::isnan(e8m0_to_float(255)));
  EXPECT_EQ(float_to_e8m0(5.0F, true, RoundMode::up), 130);
  EXPECT_EQ(float_to_e8m0(5.0F, true, RoundMode::down), 129);
}

TEST(Packed, ElementsDoNotDisturbEachOther) {
  for (const int width : {2, 4}) {
    std::vector<std::uint8_t> data(4, 0xFF);
    const std::int64_t count = static_cast<std::int64_t>(data.size()) * 8 / width;
    const auto value = [&](std::int64_t i) { return static_cast<std::uint8_t>((i * 7 + 3) & ((1 << width) - 1)); };
    for (std::int64_t i = 0; i < count; ++i) set_packed(data.data(), width, i, value(i));
    for (std::int64_t i = 0; i < count; ++i) EXPECT_EQ(get_packed(data.data(), width, i), value(i));
  }
  EXPECT_EQ(sign_extend(0x8, 4), -8);
  EXPECT_EQ(sign_extend(0x7, 4), 7);
  EXPECT_EQ(sign_extend(0x2, 2), -2);
}

}  // namespace
}  // namespace sdx
