#include "kernels/cpu/gemm/gemm_bf16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/thread_pool.h"
#include "support/kernel_problems.h"
#include "tensor/types.h"

namespace sdx::cpu {
namespace {

using namespace test;

struct Case {
  std::int64_t m, k, n;
};

float rounded(float v) { return static_cast<float>(BFloat16(v)); }

// Runs fn for each instruction set that has the instruction; false if none does.
template <class F>
bool for_each_with_dots(F&& fn) {
  bool any = false;
  for_each_isa([&] {
    if (!has_bf16_dots()) return;
    any = true;
    fn();
  });
  return any;
}

void check(const Case& c, bool trans, bool extras) {
  SCOPED_TRACE("m " + std::to_string(c.m) + " k " + std::to_string(c.k) + " n " + std::to_string(c.n) + " trans " +
               std::to_string(trans) + " extras " + std::to_string(extras));
  const std::vector<float> raw = random_floats(c.k * c.n, 3);
  // One byte off alignment, as weights in the middle of a file can be.
  std::vector<std::uint8_t> weights(static_cast<std::size_t>(2 * c.k * c.n + 1));
  for (std::int64_t i = 0; i < c.k; ++i) {
    for (std::int64_t j = 0; j < c.n; ++j) {
      const std::uint16_t bits = BFloat16(raw[static_cast<std::size_t>(i * c.n + j)]).bits;
      std::memcpy(weights.data() + 1 + 2 * (trans ? j * c.k + i : i * c.n + j), &bits, 2);
    }
  }
  Guarded<std::uint8_t> packed(static_cast<std::int64_t>(bf16_packed_bytes(c.k, c.n)));
  bf16_pack(weights.data() + 1, trans ? c.k : c.n, trans, c.k, c.n, packed.data());
  std::vector<float> plain = raw;
  for (std::int64_t i = 0; trans && i < c.k; ++i) {
    for (std::int64_t j = 0; j < c.n; ++j)
      plain[static_cast<std::size_t>(j * c.k + i)] = raw[static_cast<std::size_t>(i * c.n + j)];
  }
  Guarded<float> floats(c.k * c.n, 1, plain);
  Guarded<std::uint8_t> again(packed.size(), trans ? 4 : 2);
  bf16_pack_rounded(floats.data(), trans ? c.k : c.n, trans, c.k, c.n, again.data());
  ASSERT_EQ(std::memcmp(packed.data(), again.data(), static_cast<std::size_t>(packed.size())), 0);
  // Two of three values are not rounded yet; rounding must not change the others.
  std::vector<float> values = random_floats(c.m * c.k, 5);
  for (std::int64_t i = 0; i < c.m * c.k; i += 3)
    values[static_cast<std::size_t>(i)] = rounded(values[static_cast<std::size_t>(i)]);
  Guarded<float> a(c.m * c.k, 1, values), bias(c.n, 1, random_floats(c.n, 6));
  Guarded<float> residual(c.m * c.n, 1, random_floats(c.m * c.n, 7)), out(c.m * c.n, 3);
  HalfGemmArgs g;
  g.m = c.m, g.n = c.n, g.k = c.k, g.type = HalfType::bfloat16;
  g.a = a.data(), g.lda = c.k, g.packed = packed.data(), g.c = out.data(), g.ldc = c.n;
  if (extras) g.bias = bias.data(), g.residual = residual.data(), g.ld_residual = c.n, g.act = {Unary::relu};
  bf16_gemm(g);
  for (std::int64_t i = 0; i < c.m; ++i) {
    for (std::int64_t j = 0; j < c.n; ++j) {
      double sum = extras ? static_cast<double>(bias[j]) + residual[i * c.n + j] : 0, size = 1;
      for (std::int64_t k = 0; k < c.k; ++k) {
        const double product = static_cast<double>(rounded(a[i * c.k + k])) * rounded(raw[static_cast<std::size_t>(k * c.n + j)]);
        sum += product, size += std::fabs(product);
      }
      // Float sums of up to 512 exact products. One operand rounded too often would give an error of 1e-3.
      ASSERT_NEAR(out[i * c.n + j], extras ? std::max(0.0, sum) : sum, 2e-6 * size) << "row " << i << " column " << j;
    }
  }
}

TEST(KernelsGemmBf16, MatchesTheProductOfRoundedOperands) {
  const bool ran = for_each_with_dots([] {
    for (std::int64_t m = 1; m <= 14; ++m) check({m, 5 + 2 * m, 27 + m}, m % 2 != 0, m % 3 != 0);
    for (const Case& c : {Case{1, 1, 1}, Case{2, 2, 8}, Case{1, 1301, 33}, Case{3, 512, 32}, Case{5, 513, 31}, Case{12, 1026, 16},
                          Case{131, 9, 65}, Case{25, 1039, 40}, Case{1, 0, 5}, Case{0, 3, 4}}) {
      for (const bool trans : {false, true}) check(c, trans, true);
    }
  });
  if (!ran) GTEST_SKIP() << "no dot products of bfloat16 on this machine";
}

TEST(KernelsGemmBf16, ThreadCountsAgree) {
  const bool ran = for_each_with_dots([] {
    for (const int threads : {1, 2, 5}) {
      ThreadPool pool(threads);
      const PoolScope scope(pool);
      check({1, 700, 900}, true, true);
      check({150, 100, 130}, false, true);
    }
  });
  if (!ran) GTEST_SKIP() << "no dot products of bfloat16 on this machine";
}

// With a single 1 in each column of the weights, the product is the rounded left operand: to nearest, ties to even.
TEST(KernelsGemmBf16, RoundsToNearestEven) {
  const bool ran = for_each_with_dots([] {
    for (const std::int64_t k : {1, 31, 70}) {
      std::vector<BFloat16> unit(static_cast<std::size_t>(k * k), BFloat16(0.0F));
      for (std::int64_t i = 0; i < k; ++i) unit[static_cast<std::size_t>(i * k + i)] = BFloat16(1.0F);
      std::vector<std::uint8_t> packed(bf16_packed_bytes(k, k));
      bf16_pack(unit.data(), k, false, k, k, packed.data());
      std::vector<float> a(static_cast<std::size_t>(k)), out(a.size());
      for (std::int64_t i = 0; i < k; ++i) {
        // Halfway between two bfloat16 values, and one float below and above.
        const std::uint32_t bits = 0x3F808000U + static_cast<std::uint32_t>(i / 3 * 0x10000 + i % 3 - 1);
        std::memcpy(&a[static_cast<std::size_t>(i)], &bits, 4);
      }
      HalfGemmArgs g;
      g.m = 1, g.n = k, g.k = k, g.type = HalfType::bfloat16;
      g.a = a.data(), g.lda = k, g.packed = packed.data(), g.c = out.data(), g.ldc = k;
      bf16_gemm(g);
      for (std::int64_t i = 0; i < k; ++i) {
        ASSERT_EQ(out[static_cast<std::size_t>(i)], rounded(a[static_cast<std::size_t>(i)])) << i;
      }
    }
  });
  if (!ran) GTEST_SKIP() << "no dot products of bfloat16 on this machine";
}

TEST(KernelsGemmBf16, InfinityAndNanSpread) {
  const bool ran = for_each_with_dots([] {
    for (const std::int64_t m : {1, 13}) {
      const std::uint16_t weights[4] = {0x3F80, 0x7F80, 0x7FC0, 0xFF80};  // 1, infinity, NaN, -infinity
      std::vector<std::uint8_t> packed(bf16_packed_bytes(1, 4));
      bf16_pack(weights, 4, false, 1, 4, packed.data());
      const std::vector<float> a(static_cast<std::size_t>(m), 2.0F);
      std::vector<float> out(static_cast<std::size_t>(4 * m));
      HalfGemmArgs g;
      g.m = m, g.n = 4, g.k = 1, g.type = HalfType::bfloat16;
      g.a = a.data(), g.lda = 1, g.packed = packed.data(), g.c = out.data(), g.ldc = 4;
      bf16_gemm(g);
      for (std::int64_t i = 0; i < m; ++i) {
        const float* row = out.data() + 4 * i;
        EXPECT_EQ(row[0], 2.0F);
        EXPECT_EQ(row[1], std::numeric_limits<float>::infinity());
        EXPECT_TRUE(std::isnan(row[2]));
        EXPECT_EQ(row[3], -std::numeric_limits<float>::infinity());
      }
    }
  });
  if (!ran) GTEST_SKIP() << "no dot products of bfloat16 on this machine";
}

}  // namespace
}  // namespace sdx::cpu
