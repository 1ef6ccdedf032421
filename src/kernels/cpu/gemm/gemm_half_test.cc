#include "kernels/cpu/gemm/gemm_half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/kernel_problems.h"
#include "tensor/types.h"

namespace sdx::cpu {
namespace {

using namespace test;

struct Case {
  std::int64_t m, k, n;
};

float wide(HalfType type, std::uint16_t bits) {
  if (type == HalfType::float16) return half_to_float(bits);
  BFloat16 b;
  b.bits = bits;
  return static_cast<float>(b);
}

void check(const Case& c, HalfType type, bool trans) {
  SCOPED_TRACE("m " + std::to_string(c.m) + " k " + std::to_string(c.k) + " n " + std::to_string(c.n) + " type " +
               std::to_string(static_cast<int>(type)) + " trans " + std::to_string(trans));
  const std::vector<float> raw = random_floats(c.k * c.n, 3);
  // One byte off alignment, as weights in the middle of a file can be.
  std::vector<std::uint8_t> weights(static_cast<std::size_t>(2 * c.k * c.n + 1));
  std::vector<float> exact(static_cast<std::size_t>(c.k * c.n));  // [k][n]
  for (std::int64_t i = 0; i < c.k; ++i) {
    for (std::int64_t j = 0; j < c.n; ++j) {
      const float v = raw[static_cast<std::size_t>(i * c.n + j)] * (i % 7 == 0 ? 1e-6F : 1.0F);  // some are subnormal in float16
      const std::uint16_t bits = type == HalfType::float16 ? float_to_half(v) : BFloat16(v).bits;
      exact[static_cast<std::size_t>(i * c.n + j)] = wide(type, bits);
      std::memcpy(weights.data() + 1 + 2 * (trans ? j * c.k + i : i * c.n + j), &bits, 2);
    }
  }
  Guarded<std::uint8_t> packed(static_cast<std::int64_t>(half_packed_bytes(c.k, c.n)));
  half_pack(weights.data() + 1, trans ? c.k : c.n, trans, c.k, c.n, packed.data());
  Guarded<float> a(c.m * c.k, 1, random_floats(c.m * c.k, 5)), bias(c.n, 1, random_floats(c.n, 6));
  Guarded<float> residual(c.m * c.n, 1, random_floats(c.m * c.n, 7)), out(c.m * c.n, 3);
  HalfGemmArgs g;
  g.m = c.m, g.n = c.n, g.k = c.k, g.type = type;
  g.a = a.data(), g.lda = c.k, g.packed = packed.data(), g.bias = bias.data();
  g.residual = residual.data(), g.ld_residual = c.n, g.act = {Unary::relu}, g.c = out.data(), g.ldc = c.n;
  half_gemm(g);
  for (std::int64_t i = 0; i < c.m; ++i) {
    for (std::int64_t j = 0; j < c.n; ++j) {
      double sum = static_cast<double>(bias[j]) + residual[i * c.n + j], size = 1;
      for (std::int64_t k = 0; k < c.k; ++k) {
        const double product = static_cast<double>(a[i * c.k + k]) * exact[static_cast<std::size_t>(k * c.n + j)];
        sum += product, size += std::fabs(product);
      }
      // Float sums of up to 700 products.
      ASSERT_NEAR(out[i * c.n + j], std::max(0.0, sum), 2e-6 * size) << "row " << i << " column " << j;
    }
  }
}

TEST(KernelsGemmHalf, MatchesWidenedProduct) {
  for_each_isa([] {
    for (const Case& c : {Case{1, 1, 1}, Case{1, 37, 33}, Case{2, 64, 16}, Case{2, 5, 100}, Case{3, 40, 65}, Case{4, 128, 48},
                          Case{7, 130, 70}, Case{9, 33, 16}, Case{20, 700, 50}, Case{1, 0, 5}}) {
      for (const HalfType type : {HalfType::float16, HalfType::bfloat16}) {
        for (const bool trans : {false, true}) check(c, type, trans);
      }
    }
  });
}

TEST(KernelsGemmHalf, InfinityAndNanSpread) {
  for_each_isa([] {
    for (const std::int64_t m : {1, 12}) {
      const std::uint16_t weights[4] = {0x3C00, 0x7C00, 0x7E00, 0xFC00};  // 1, infinity, NaN, -infinity
      std::vector<std::uint8_t> packed(half_packed_bytes(1, 4) + 64);
      half_pack(weights, 4, false, 1, 4, packed.data());
      const std::vector<float> a(static_cast<std::size_t>(m), 2.0F);
      std::vector<float> out(static_cast<std::size_t>(4 * m));
      HalfGemmArgs g;
      g.m = m, g.n = 4, g.k = 1, g.a = a.data(), g.lda = 1, g.packed = packed.data(), g.c = out.data(), g.ldc = 4;
      half_gemm(g);
      EXPECT_EQ(out[0], 2.0F);
      EXPECT_EQ(out[1], std::numeric_limits<float>::infinity());
      EXPECT_TRUE(std::isnan(out[2]));
      EXPECT_EQ(out[3], -std::numeric_limits<float>::infinity());
    }
  });
}

}  // namespace
}  // namespace sdx::cpu
