#include "kernels/cpu/gemm/gemm_strassen.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "base/system/amx.h"
#include "base/thread_pool.h"
#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using test::for_each_isa;
using test::Guarded;
using test::random_floats;

struct Case {
  std::int64_t m, k, n;
};

// Odd numbers of rows, tiles with different numbers of rows, blocks of rows (K of 8000), one to several groups of blocks of K,
// and columns beyond the pairs.
const std::vector<Case> kCases = {{96, 64, 128}, {97, 256, 64},    {7, 384, 130},  {1, 128, 64},
                                  {2, 1024, 67}, {131, 1000, 193}, {230, 8000, 64}};

struct Problem {
  std::int64_t m, k, n;
  std::vector<float> a, b, bias, residual;
  std::vector<float> packed;
  explicit Problem(const Case& s)
      : m(s.m),
        k(s.k),
        n(s.n),
        a(random_floats(m * k, 1)),
        b(random_floats(k * n, 2)),
        bias(random_floats(n, 3)),
        residual(random_floats(m * n, 4)) {
    pack();
  }
  void pack() {
    packed.resize(packed_b_bytes(k, n) / 4 + 16);
    pack_b_f32(b.data(), n, false, k, n, 1.0F, weights());
  }
  float* weights() { return packed.data() + (16 - reinterpret_cast<std::uintptr_t>(packed.data()) / 4 % 16) % 16; }
  GemmArgs args(float* c) {
    GemmArgs g;
    g.m = m, g.n = n, g.k = k;
    g.a = a.data(), g.lda = k;
    g.packed_b = weights();
    g.c = c, g.ldc = n;
    return g;
  }
  double product(std::int64_t i, std::int64_t j) const {
    double sum = 0;
    for (std::int64_t x = 0; x < k; ++x) {
      sum += static_cast<double>(a[static_cast<std::size_t>(i * k + x)]) * b[static_cast<std::size_t>(x * n + j)];
    }
    return sum;
  }
};

// Calls check for columns in every part of the matrix.
template <class F>
void for_some_columns(std::int64_t n, F check) {
  for (std::int64_t j = 0; j < n; j += std::max<std::int64_t>(1, n / 37)) check(j);
  check(n - 1);
}

void check(const Case& s, int style) {
  SCOPED_TRACE("m " + std::to_string(s.m) + " k " + std::to_string(s.k) + " n " + std::to_string(s.n) + " style " +
               std::to_string(style));
  Problem p(s);
  Guarded<float> c(s.m * s.n, 1, p.residual);
  GemmArgs g = p.args(c.data());
  if (style > 0) g.epilogue.bias = p.bias.data();
  if (style == 1) g.epilogue.act = {Unary::relu};
  if (style == 2) g.epilogue.residual = c.data(), g.epilogue.ld_residual = s.n, g.epilogue.act = {Unary::sigmoid};
  StrassenColumns columns(s.n);
  ASSERT_TRUE(strassen_fits(s.k, s.n));
  gemm_strassen_f32(g, columns);
  for (std::int64_t i = 0; i < s.m; ++i) {
    for_some_columns(s.n, [&](std::int64_t j) {
      double want = p.product(i, j) + (style > 0 ? p.bias[static_cast<std::size_t>(j)] : 0.0F);
      if (style == 1) want = std::max(want, 0.0);
      if (style == 2) want = 1 / (1 + std::exp(-want - p.residual[static_cast<std::size_t>(i * s.n + j)]));
      ASSERT_NEAR(c[i * s.n + j], want, 2e-6 * std::sqrt(static_cast<double>(s.k)) + 1e-6) << i << "," << j;
    });
  }
}

TEST(KernelsGemmStrassen, MatchesTheNaiveProduct) {
  for_each_isa([] {
    for (const Case& s : kCases) {
      for (int style = 0; style < 3; ++style) {
        if (strassen_fits(s.k, s.n)) check(s, style);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

// Copies B, or its transpose, to an odd address, and has the product read it there.
std::vector<char> leave_unpacked(const Problem& p, bool trans, GemmArgs& g) {
  std::vector<char> memory(p.b.size() * 4 + 1);
  for (std::int64_t x = 0; x < p.k; ++x) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      const std::int64_t to = trans ? j * p.k + x : x * p.n + j;
      std::memcpy(memory.data() + 1 + to * 4, &p.b[static_cast<std::size_t>(x * p.n + j)], 4);
    }
  }
  g.packed_b = nullptr;
  g.b = reinterpret_cast<const float*>(memory.data() + 1);
  g.ldb = trans ? p.k : p.n;
  g.trans_b = trans;
  g.like_packed = true;
  return memory;
}

TEST(KernelsGemmStrassen, WeightsThatAreNotPackedGiveTheSameBits) {
  for_each_isa([] {
    for (const Case& s : kCases) {
      if (!strassen_fits(s.k, s.n)) continue;
      Problem p(s);
      for (std::int64_t x = 0; x < s.k; ++x) p.b[static_cast<std::size_t>(x * s.n + 5)] *= 1000.0F;  // an uneven pair
      p.pack();
      std::vector<float> want(p.residual.size());
      StrassenColumns columns(s.n);
      gemm_strassen_f32(p.args(want.data()), columns);
      for (const int threads : {1, 3}) {
        for (const bool trans : {false, true}) {
          ThreadPool pool(threads);
          const PoolScope scope(pool);
          std::vector<float> c(want.size());
          GemmArgs g = p.args(c.data());
          const std::vector<char> b = leave_unpacked(p, trans, g);
          StrassenColumns own(s.n);
          gemm_strassen_f32(g, own);
          ASSERT_EQ(c, want) << s.m << " x " << s.k << " x " << s.n << " threads " << threads << " trans " << trans;
          gemm_strassen_f32(p.args(c.data()), own);
          ASSERT_EQ(c, want);
        }
      }
    }
  });
}

TEST(KernelsGemmStrassen, ThreadCountsGiveTheSameBits) {
  for (const Case& s : {Case{128, 768, 96}, Case{199, 512, 330}}) {
    Problem p(s);
    std::vector<float> first;
    for (const int threads : {1, 2, 4, 8}) {
      ThreadPool pool(threads);
      const PoolScope scope(pool);
      for (int repeat = 0; repeat < 3; ++repeat) {
        std::vector<float> c(p.residual.size());
        StrassenColumns columns(s.n);
        gemm_strassen_f32(p.args(c.data()), columns);
        if (first.empty()) first = c;
        ASSERT_EQ(c, first) << threads;
      }
    }
  }
}

double error_of(Problem& p, const std::vector<float>& c, std::int64_t row0, std::int64_t row1) {
  double sum = 0;
  for (std::int64_t i = row0; i < row1; ++i) {
    for_some_columns(p.n, [&](std::int64_t j) {
      const double d = c[static_cast<std::size_t>(i * p.n + j)] - p.product(i, j);
      sum += d * d;
    });
  }
  return std::sqrt(sum);
}

TEST(KernelsGemmStrassen, RoundsLittleMoreThanPlainSums) {
  for_each_isa([] {
    if (use_amx_bf16()) return;  // such sums are another kind of plain
    Problem p({128, 1536, 192});
    std::vector<float> plain(p.residual.size()), c(p.residual.size());
    gemm_f32(p.args(plain.data()));
    StrassenColumns columns(p.n);
    gemm_strassen_f32(p.args(c.data()), columns);
    EXPECT_LT(error_of(p, c, 0, p.m), 1.6 * error_of(p, plain, 0, p.m));
    EXPECT_NE(c, plain);
  });
}

TEST(KernelsGemmStrassen, UnevenRowsAndColumnsAreSummedPlainly) {
  for_each_isa([] {
    const Case s{128, 256, 256};
    const auto both = [&](Problem& p) {
      std::vector<float> plain(p.residual.size()), c(p.residual.size());
      gemm_f32(p.args(plain.data()));
      StrassenColumns columns(s.n);
      gemm_strassen_f32(p.args(c.data()), columns);
      return std::pair(plain, c);
    };
    Problem zero(s);  // as for padding
    std::fill_n(zero.a.begin() + 3 * s.k, s.k, 0.0F);
    const auto [plain, c] = both(zero);
    EXPECT_EQ(plain, c);
    Problem large(s);
    for (std::int64_t x = 0; x < s.k; ++x) large.a[static_cast<std::size_t>(70 * s.k + x)] *= 1000.0F;
    const auto [plain2, c2] = both(large);
    EXPECT_EQ(plain2, c2);
    Problem column(s);
    for (std::int64_t x = 0; x < s.k; ++x) column.b[static_cast<std::size_t>(x * s.n + 5)] *= 1000.0F;
    column.pack();
    const auto [plain3, c3] = both(column);
    for (std::int64_t i = 0; i < s.m; ++i) {
      for (const std::int64_t j : {std::int64_t{4}, std::int64_t{5}, s.n / 2 + 5}) {
        EXPECT_EQ(plain3[static_cast<std::size_t>(i * s.n + j)], c3[static_cast<std::size_t>(i * s.n + j)]);
      }
    }
    EXPECT_NE(plain3, c3);
  });
}

TEST(KernelsGemmStrassen, NanAndInfinityStayInTheirRows) {
  for_each_isa([] {
    for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      Problem p({128, 256, 256});
      p.a[static_cast<std::size_t>(9 * p.k + 200)] = value;
      std::vector<float> c(p.residual.size());
      StrassenColumns columns(p.n);
      gemm_strassen_f32(p.args(c.data()), columns);
      for (std::int64_t i = 0; i < p.m; ++i) {
        for (std::int64_t j = 0; j < p.n; ++j) ASSERT_EQ(std::isfinite(c[static_cast<std::size_t>(i * p.n + j)]), i != 9);
      }
    }
  });
}

}  // namespace
}  // namespace sdx::cpu
