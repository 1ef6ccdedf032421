#include "kernels/cpu/gemm/gemm_split.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/system/amx.h"
#include "base/thread_pool.h"
#include "kernels/cpu/gemm/gemm.h"
#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using test::Guarded;
using test::random_floats;

struct Problem {
  std::int64_t m, n, k;
  std::vector<float> a = random_floats(m * k, 1), b = random_floats(k * n, 2);

  std::vector<float> product() const {
    Guarded<float> packed(static_cast<std::int64_t>(packed_b_bytes(k, n) / 4));
    std::vector<float> c(static_cast<std::size_t>(m * n));
    pack_b_f32(b.data(), n, false, k, n, 1.0F, packed.data());
    GemmArgs g;
    g.m = m, g.n = n, g.k = k, g.a = a.data(), g.lda = k, g.packed_b = packed.data(), g.c = c.data(), g.ldc = n;
    gemm_f32(g);
    return c;
  }
  double exact(std::int64_t i, std::int64_t j) const {
    double sum = 0;
    for (std::int64_t x = 0; x < k; ++x) {
      sum += static_cast<double>(a[static_cast<std::size_t>(i * k + x)]) * b[static_cast<std::size_t>(x * n + j)];
    }
    return sum;
  }
  double error(const std::vector<float>& c) const {
    double sum = 0;
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) sum += std::pow(c[static_cast<std::size_t>(i * n + j)] - exact(i, j), 2);
    }
    return std::sqrt(sum / static_cast<double>(m * n));
  }
};

class GemmSplit : public ::testing::Test {
 protected:
  void SetUp() override {
    if (split_kernels() == nullptr) GTEST_SKIP() << "no AMX";
  }
};

TEST_F(GemmSplit, RoundsLessThanSumsOfFloats) {
  for (const std::int64_t k : {40, 300, 1200}) {
    const Problem p{64, 160, k};
    ASSERT_TRUE(split_pays(p.m, p.n, p.k));
    const double tiles = p.error(p.product());
    allow_amx(false);
    const double floats = p.error(p.product());
    allow_amx(true);
    EXPECT_LT(tiles, floats) << k;
  }
}

TEST_F(GemmSplit, NumbersOfAllMagnitudesKeepTheirBits) {
  Problem p{32, 160, 64};
  std::fill(p.b.begin(), p.b.end(), 0.0F);
  for (std::int64_t j = 0; j < p.n; ++j) p.b[static_cast<std::size_t>(j % p.k * p.n + j)] = 1.0F;
  for (std::size_t i = 0; i < p.a.size(); ++i) p.a[i] *= std::ldexp(1.0F, static_cast<int>(i % 200) - 100);
  const std::vector<float> c = p.product();
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      ASSERT_EQ(c[static_cast<std::size_t>(i * p.n + j)], p.a[static_cast<std::size_t>(i * p.k + j % p.k)]) << i << "," << j;
    }
  }
}

TEST_F(GemmSplit, InfinitiesAndNanStayInTheirRowsAndColumns) {
  for (const float value : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    for (const bool left : {true, false}) {
      Problem p{70, 200, 600};
      // In the second block of K, beyond the first panel.
      left ? p.a[static_cast<std::size_t>(37 * p.k + 500)] = value : p.b[static_cast<std::size_t>(500 * p.n + 77)] = value;
      const std::vector<float> c = p.product();
      for (std::int64_t i = 0; i < p.m; ++i) {
        for (std::int64_t j = 0; j < p.n; ++j) {
          const double want = p.exact(i, j);
          const float got = c[static_cast<std::size_t>(i * p.n + j)];
          if (std::isnan(want)) {
            ASSERT_TRUE(std::isnan(got)) << i << "," << j;
          } else if (std::isinf(want)) {
            ASSERT_EQ(got, want) << i << "," << j;
          } else {
            ASSERT_NEAR(got, want, 1e-4) << i << "," << j;
          }
        }
      }
    }
  }
}

TEST_F(GemmSplit, ThreadCountsGiveTheSameBits) {
  const Problem p{197, 400, 520};
  const std::vector<float> one = p.product();
  for (const int threads : {2, 3, 5}) {
    ThreadPool pool(threads);
    const PoolScope scope(pool);
    EXPECT_EQ(p.product(), one) << threads;
  }
}

}  // namespace
}  // namespace sdx::cpu
