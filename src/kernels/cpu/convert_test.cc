#include "kernels/cpu/convert.h"

#include <gtest/gtest.h>

#include <bit>

#include "kernels/cpu/test_util.h"
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

}  // namespace
}  // namespace sdx::cpu
