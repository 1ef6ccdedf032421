#include "kernels/cpu/gemm/gemm.h"

#include <gtest/gtest.h>

#include "base/thread_pool.h"
#include "kernels/cpu/gemm/gemm_block.h"
#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using test::for_each_isa;
using test::Guarded;
using test::random_floats;

struct Case {
  std::int64_t m, n, k;
};

const std::vector<Case> kCases = {{1, 1, 1},
                                  {1, 5, 3},
                                  {2, 16, 7},
                                  {3, 17, 2},
                                  {4, 33, 9},
                                  {5, 15, 31},
                                  {6, 16, 64},
                                  {7, 8, 40},
                                  {13, 47, 65},
                                  {14, 32, 100},
                                  {15, 31, 5},
                                  {1, 700, 33},
                                  {29, 1, 77},
                                  {700, 1, 9},
                                  {64, 64, 64},
                                  {61, 67, 385},
                                  {33, 130, 800},
                                  {190, 300, 50},
                                  {1, 130, 800},
                                  {2, 40, 770},
                                  {400, 35, 24},
                                  // Enough for tiles of bfloat16.
                                  {64, 500, 257},
                                  {100, 260, 95},
                                  {48, 700, 33},
                                  // Rows 4 KB apart; many columns.
                                  {33, 130, 1021},
                                  {30, 1030, 40},
                                  {29, 1030, 1021}};

double act(const UnarySpec& s, double x) {
  switch (s.op) {
    case Unary::relu: return std::max(x, 0.0);
    case Unary::clip: return std::min(std::max(x, static_cast<double>(s.a)), static_cast<double>(s.b));
    case Unary::sigmoid: return 1 / (1 + std::exp(-x));
    default: return x;
  }
}

struct Variant {
  bool trans_a, trans_b, pack_a, pack_b;
};

// Checks every way to pass the operands, with an epilogue that varies with `style`.
void check(const Case& s, const Variant& v, int style) {
  SCOPED_TRACE("m " + std::to_string(s.m) + " n " + std::to_string(s.n) + " k " + std::to_string(s.k) + " variant " +
               std::to_string(v.trans_a) + std::to_string(v.trans_b) + std::to_string(v.pack_a) + std::to_string(v.pack_b) +
               " style " + std::to_string(style));
  const std::int64_t lda = (v.trans_a ? s.m : s.k) + 3;
  const std::int64_t ldb = (v.trans_b ? s.n * 0 + s.k : s.n) + 1;
  const std::int64_t rows_a = v.trans_a ? s.k : s.m;
  const std::int64_t rows_b = v.trans_b ? s.n : s.k;
  const std::int64_t ldc = s.n + 2;
  Guarded<float> a((rows_a - 1) * lda + (v.trans_a ? s.m : s.k), 1, random_floats(rows_a * lda, 1));
  Guarded<float> b((rows_b - 1) * ldb + (v.trans_b ? s.k : s.n), 3, random_floats(rows_b * ldb, 2));
  Guarded<float> c((s.m - 1) * ldc + s.n, 5, random_floats(s.m * ldc, 3));
  const std::vector<float> before(c.data(), c.data() + c.size());
  Guarded<float> bias(std::max(s.m, s.n), 1, random_floats(std::max(s.m, s.n), 4));
  Guarded<float> residual(s.m * s.n, 2, random_floats(s.m * s.n, 5));

  GemmArgs g;
  g.m = s.m, g.n = s.n, g.k = s.k;
  Guarded<float> pa(s.m * s.k);
  Guarded<float> pb(static_cast<std::int64_t>(packed_b_bytes(s.k, s.n) / 4));
  // Sources one byte off a float boundary, as views into a file can be.
  std::vector<char> raw(static_cast<std::size_t>(std::max(a.size(), b.size())) * 4 + 1);
  float pack_scale = 1.0F;
  if (v.pack_a) {
    std::memcpy(raw.data() + 1, a.data(), static_cast<std::size_t>(a.size()) * 4);
    pack_a_f32(raw.data() + 1, lda, v.trans_a, s.m, s.k, 1.0F, pa.data());
    g.packed_a = pa.data();
  } else {
    g.a = a.data(), g.lda = lda, g.trans_a = v.trans_a;
  }
  if (v.pack_b) {
    pack_scale = 0.5F;
    std::memcpy(raw.data() + 1, b.data(), static_cast<std::size_t>(b.size()) * 4);
    pack_b_f32(raw.data() + 1, ldb, v.trans_b, s.k, s.n, pack_scale, pb.data());
    g.packed_b = pb.data();
  } else {
    g.b = b.data(), g.ldb = ldb, g.trans_b = v.trans_b;
  }
  g.c = c.data(), g.ldc = ldc;
  if (style == 1) {
    g.alpha = 0.75F;
    g.epilogue.bias = bias.data();
    g.epilogue.bias_scale = 2.0F;
    g.epilogue.act = {Unary::relu};
  } else if (style == 2) {
    g.epilogue.bias = bias.data();
    g.epilogue.bias_per_row = true;
    g.epilogue.residual = residual.data();
    g.epilogue.ld_residual = s.n;
    g.epilogue.act = {Unary::sigmoid};
  } else if (style == 3) {
    g.epilogue.residual = c.data();
    g.epilogue.ld_residual = ldc;
    g.epilogue.residual_scale = -0.5F;
    g.epilogue.act = {Unary::clip, -1.0F, 1.5F};
  }
  gemm_f32(g);
  for (std::int64_t i = 0; i < s.m; ++i) {
    for (std::int64_t j = 0; j < s.n; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < s.k; ++k) {
        sum += static_cast<double>(v.trans_a ? a[k * lda + i] : a[i * lda + k]) * (v.trans_b ? b[j * ldb + k] : b[k * ldb + j]);
      }
      sum *= static_cast<double>(g.alpha) * pack_scale;
      if (style == 1) sum += 2.0 * bias[j];
      if (style == 2) sum += static_cast<double>(bias[i]) + residual[i * s.n + j];
      if (style == 3) sum -= 0.5 * before[static_cast<std::size_t>(i * ldc + j)];
      ASSERT_NEAR(c[i * ldc + j], act(g.epilogue.act, sum), 2e-6 * std::sqrt(static_cast<double>(s.k)) + 1e-6) << i << "," << j;
    }
    if (i + 1 < s.m) {
      for (std::int64_t j = s.n; j < ldc; ++j) ASSERT_EQ(c[i * ldc + j], before[static_cast<std::size_t>(i * ldc + j)]);
    }
  }
}

TEST(KernelsGemm, EveryOperandFormMatchesTheNaiveProduct) {
  for_each_isa([] {
    for (const Case& s : kCases) {
      for (int bits = 0; bits < 16; ++bits) {
        check(s, {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0}, (bits + static_cast<int>(s.m)) % 4);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

TEST(KernelsGemm, ThreadCountsAgree) {
  for (const int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    const PoolScope scope(pool);
    for (int style = 0; style < 4; ++style) {
      check({300, 200, 130}, {false, false, false, true}, style);
      check({64, 900, 120}, {false, false, true, false}, style);
      check({1, 5000, 128}, {false, true, false, false}, style);
      check({5000, 1, 128}, {false, false, false, false}, style);
    }
  }
}

// Rows and columns of the largest share, in multiply-adds per step of K, divided by those of equal shares.
double unevenness(int threads, std::int64_t m, std::int64_t n, std::int64_t k) {
  ThreadPool pool(threads);
  const PoolScope scope(pool);
  const GemmKernels& kernels = gemm_kernels();
  const TaskGrid grid = choose_grid(kernels, m, n, k, 1, true);
  const Cuts tiles(m, kernels.mr);
  const std::int64_t panels = up_div(n, kernels.nr);
  const Cuts rows(tiles.parts, up_div(tiles.parts, grid.rows)), columns(panels, up_div(panels, grid.columns));
  const Cuts shares(rows.parts * columns.parts, up_div(rows.parts * columns.parts, threads));
  std::int64_t most = 0;
  for (std::int64_t s = 0; s < shares.parts; ++s) {
    std::int64_t work = 0;
    for (std::int64_t i = shares.begin(s); i < shares.begin(s + 1); ++i) {
      const std::int64_t r = i / columns.parts, c = i % columns.parts;
      work += (tiles.begin(rows.begin(r + 1)) - tiles.begin(rows.begin(r))) * columns.size(c) * kernels.nr;
    }
    most = std::max(most, work);
  }
  return static_cast<double>(most * threads) / static_cast<double>(m * panels * kernels.nr);
}

TEST(KernelsGemm, ThreadsGetEqualShares) {
  for_each_isa([] {
    EXPECT_LE(unevenness(2, 197, 192, 192), 1.01);
    EXPECT_LE(unevenness(2, 197, 576, 192), 1.01);
    EXPECT_LE(unevenness(2, 1, 1000, 1280), 1.04);
    EXPECT_LE(unevenness(2, 49, 512, 2048), 1.01);
    EXPECT_LE(unevenness(2, 3136, 64, 256), 1.01);
    EXPECT_LE(unevenness(4, 50, 768, 768), 1.01);
    EXPECT_LE(unevenness(3, 128, 384, 512), 1.01);
  });
}

TEST(KernelsGemm, FewPanelsArePackedOnce) {
  for_each_isa([] {
    ThreadPool pool(2);
    const PoolScope scope(pool);
    const GemmKernels& kernels = gemm_kernels();
    const TaskGrid few = choose_grid(kernels, 4 * kernels.nr, 2 * kernels.nr, 1000000, 1, false);
    EXPECT_EQ(few.rows, 1);
    EXPECT_EQ(few.columns, 2);
    const TaskGrid many = choose_grid(kernels, 100 * kernels.nr, 2 * kernels.nr, 1000000, 1, false);
    EXPECT_EQ(many.rows, 2);
    EXPECT_EQ(many.columns, 1);
  });
}

TEST(KernelsGemm, BatchUsesOffsets) {
  for_each_isa([] {
    const std::int64_t m = 5, n = 19, k = 23, batch = 4;
    const std::vector<float> a = random_floats(2 * m * k, 1);
    const std::vector<float> b = random_floats(batch * k * n, 2);
    Guarded<float> c(batch * m * n, 1);
    const std::int64_t ao[] = {0, m * k, 0, m * k};
    const std::int64_t bo[] = {3 * k * n, 0, k * n, 2 * k * n};
    const std::int64_t co[] = {0, m * n, 2 * m * n, 3 * m * n};
    GemmArgs g;
    g.m = m, g.n = n, g.k = k, g.a = a.data(), g.lda = k, g.b = b.data(), g.ldb = n, g.c = c.data(), g.ldc = n;
    gemm_batch_f32(g, batch, ao, bo, co);
    for (std::int64_t p = 0; p < batch; ++p) {
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (std::int64_t x = 0; x < k; ++x) {
            sum += static_cast<double>(a[static_cast<std::size_t>(ao[p] + i * k + x)]) *
                   b[static_cast<std::size_t>(bo[p] + x * n + j)];
          }
          ASSERT_NEAR(c[co[p] + i * n + j], sum, 1e-5);
        }
      }
    }
  });
}

TEST(KernelsGemm, SweepsInBothDirectionsGiveTheSameBits) {
  for_each_isa([] {
    for (const Case& s : {Case{1, 2048, 512}, Case{1, 77, 600}, Case{3, 333, 130}, Case{40, 100, 300}}) {
      const std::vector<float> a = random_floats(s.m * s.k, 1), b = random_floats(s.k * s.n, 2),
                               sums = random_floats(s.m * s.n, 3);
      Guarded<float> packed(static_cast<std::int64_t>(packed_b_bytes(s.k, s.n) / 4));
      pack_b_f32(b.data(), s.n, false, s.k, s.n, 1.0F, packed.data());
      for (const int threads : {1, 2, 3}) {
        ThreadPool pool(threads);
        const PoolScope scope(pool);
        std::vector<std::vector<float>> results;
        for (const int sweep : {0, 1, -1}) {
          Guarded<float> c(s.m * s.n, 1, sums);
          GemmArgs g;
          g.m = s.m, g.n = s.n, g.k = s.k, g.a = a.data(), g.lda = s.k, g.packed_b = packed.data(), g.c = c.data(), g.ldc = s.n;
          g.epilogue.residual = c.data(), g.epilogue.ld_residual = s.n;
          g.sweep = sweep;
          gemm_f32(g);
          results.emplace_back(c.data(), c.data() + c.size());
        }
        ASSERT_EQ(results[0], results[1]) << threads;
        ASSERT_EQ(results[0], results[2]) << threads;
      }
    }
  });
}

TEST(KernelsGemm, LikePackedGivesTheSameBits) {
  for_each_isa([] {
    for (const std::int64_t m : {1, 2, 3, 5, 7, 13, 15, 29, 130}) {
      for (const std::int64_t n : {1, 17, 64, 71, 600}) {
        for (const std::int64_t k : {1, 9, 256, 700}) {
          const std::vector<float> a = random_floats(m * k, 1), b = random_floats(n * k, 2), bias = random_floats(n, 3);
          Guarded<float> packed(static_cast<std::int64_t>(packed_b_bytes(k, n) / 4));
          pack_b_f32(b.data(), k, true, k, n, 1.0F, packed.data());
          std::vector<float> transposed(b.size());
          for (std::int64_t j = 0; j < n; ++j) {
            for (std::int64_t x = 0; x < k; ++x)
              transposed[static_cast<std::size_t>(x * n + j)] = b[static_cast<std::size_t>(j * k + x)];
          }
          for (const int threads : {1, 3}) {
            ThreadPool pool(threads);
            const PoolScope scope(pool);
            std::vector<float> want(static_cast<std::size_t>(m * n)), c(want.size());
            GemmArgs g;
            g.m = m, g.n = n, g.k = k, g.a = a.data(), g.lda = k, g.packed_b = packed.data(), g.c = want.data(), g.ldc = n;
            g.epilogue.bias = bias.data();
            gemm_f32(g);
            g.packed_b = nullptr, g.like_packed = true, g.c = c.data();
            for (const bool trans : {false, true}) {
              g.b = trans ? b.data() : transposed.data(), g.ldb = trans ? k : n, g.trans_b = trans;
              std::fill(c.begin(), c.end(), 0.0F);
              gemm_f32(g);
              ASSERT_EQ(c, want) << m << " x " << k << " x " << n << " threads " << threads << " trans " << trans;
            }
          }
        }
      }
    }
  });
}

TEST(KernelsGemm, EmptyExtents) {
  float c[6] = {1, 2, 3, 4, 5, 6};
  const float bias[3] = {1, -2, 3};
  GemmArgs g;
  g.m = 2, g.n = 3, g.k = 0, g.c = c, g.ldc = 3;
  g.epilogue.bias = bias;
  g.epilogue.act = {Unary::relu};
  gemm_f32(g);
  const float want[6] = {1, 0, 3, 1, 0, 3};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(c[i], want[i]);
  g.m = 0;
  gemm_f32(g);
  g.m = 2, g.n = 0;
  gemm_f32(g);
  EXPECT_EQ(c[0], 1);
}

TEST(KernelsGemm, NanAndInfinityReachTheOutput) {
  for_each_isa([] {
    std::vector<float> a(8 * 8, 1.0F), b(8 * 8, 1.0F), c(64);
    a[9] = std::numeric_limits<float>::quiet_NaN();
    b[18] = std::numeric_limits<float>::infinity();
    GemmArgs g;
    g.m = g.n = g.k = 8;
    g.a = a.data(), g.lda = 8, g.b = b.data(), g.ldb = 8, g.c = c.data(), g.ldc = 8;
    g.epilogue.act = {Unary::relu};
    gemm_f32(g);
    for (int j = 0; j < 8; ++j) EXPECT_TRUE(std::isnan(c[static_cast<std::size_t>(8 + j)]));
    EXPECT_TRUE(std::isinf(c[2]));
    EXPECT_EQ(c[0], 8.0F);
  });
}

}  // namespace
}  // namespace sdx::cpu
