#include "kernels/cpu/attention/attention.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/attention/attention_panels.h"
#include "kernels/cpu/simd/cuts.h"
#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using test::for_each_isa;
using test::Guarded;
using test::random_floats;

struct Case {
  std::int64_t batch, heads, kv_heads, queries, keys, size, v_size;
  bool causal, masked;
  std::int64_t window;
  float softcap;
  bool lengths;
};

void check(const Case& c) {
  SCOPED_TRACE("queries " + std::to_string(c.queries) + " keys " + std::to_string(c.keys) + " size " + std::to_string(c.size));
  Guarded<float> q(c.batch * c.queries * c.heads * c.size, 1, random_floats(c.batch * c.queries * c.heads * c.size, 1, -2, 2));
  Guarded<float> k(c.batch * c.kv_heads * c.keys * c.size, 3, random_floats(c.batch * c.kv_heads * c.keys * c.size, 2, -2, 2));
  Guarded<float> v(c.batch * c.kv_heads * c.keys * c.v_size, 1, random_floats(c.batch * c.kv_heads * c.keys * c.v_size, 3));
  Guarded<float> mask(c.queries * c.keys, 1, random_floats(c.queries * c.keys, 4));
  Guarded<float> out(c.batch * c.queries * c.heads * c.v_size, 5);
  const std::vector<std::int32_t> lengths = {static_cast<std::int32_t>(c.keys), static_cast<std::int32_t>(c.keys / 2)};
  AttentionArgs a;
  a.batch = c.batch, a.heads = c.heads, a.kv_heads = c.kv_heads, a.queries = c.queries, a.keys = c.keys, a.head_size = c.size,
  a.v_head_size = c.v_size;
  // q and out as [batch, queries, heads, size]; k and v as [batch, kv_heads, keys, size].
  a.q = q.data(), a.q_batch = c.queries * c.heads * c.size, a.q_head = c.size, a.q_row = c.heads * c.size;
  a.k = k.data(), a.k_batch = c.kv_heads * c.keys * c.size, a.k_head = c.keys * c.size, a.k_row = c.size;
  a.v = v.data(), a.v_batch = c.kv_heads * c.keys * c.v_size, a.v_head = c.keys * c.v_size, a.v_row = c.v_size;
  a.out = out.data(), a.out_batch = c.queries * c.heads * c.v_size, a.out_head = c.v_size, a.out_row = c.heads * c.v_size;
  a.scale = 0.35F, a.softcap = c.softcap, a.causal = c.causal, a.causal_offset = c.keys - c.queries, a.window = c.window;
  if (c.masked) a.mask = mask.data(), a.mask_row = c.keys;
  if (c.lengths) a.key_lengths = lengths.data();
  attention_f32(a);
  for (std::int64_t b = 0; b < c.batch; ++b) {
    for (std::int64_t h = 0; h < c.heads; ++h) {
      const std::int64_t kv = h / (c.heads / c.kv_heads);
      for (std::int64_t i = 0; i < c.queries; ++i) {
        std::vector<double> p(static_cast<std::size_t>(c.keys));
        double max = -1e300, sum = 0;
        for (std::int64_t j = 0; j < c.keys; ++j) {
          double s = 0;
          for (std::int64_t x = 0; x < c.size; ++x) {
            s += static_cast<double>(q[b * a.q_batch + h * a.q_head + i * a.q_row + x]) *
                 k[b * a.k_batch + kv * a.k_head + j * c.size + x];
          }
          s *= static_cast<double>(a.scale);
          if (c.softcap > 0) s = c.softcap * std::tanh(s / c.softcap);
          if (c.masked) s += mask[i * c.keys + j];
          const std::int64_t last = i + a.causal_offset;
          if ((c.causal && j > last) || (c.window > 0 && j <= last - c.window) ||
              (c.lengths && j >= lengths[static_cast<std::size_t>(b)])) {
            s = -1e300;
          }
          p[static_cast<std::size_t>(j)] = s;
          max = std::max(max, s);
        }
        for (double& s : p) {
          s = s <= -1e300 ? 0 : std::exp(s - max);
          sum += s;
        }
        for (std::int64_t x = 0; x < c.v_size; ++x) {
          double want = 0;
          for (std::int64_t j = 0; j < c.keys; ++j)
            want += p[static_cast<std::size_t>(j)] * v[b * a.v_batch + kv * a.v_head + j * c.v_size + x];
          want = sum > 0 ? want / sum : 0;
          ASSERT_NEAR(out[b * a.out_batch + h * a.out_head + i * a.out_row + x], want, 3e-6)
              << b << " " << h << " " << i << " " << x;
        }
      }
    }
  }
}

TEST(KernelsAttention, MatchesTheDefinition) {
  for_each_isa([] {
    for (const Case& c :
         {Case{1, 2, 2, 5, 7, 8, 8, false, false, 0, 0, false}, Case{2, 4, 2, 60, 300, 33, 20, true, false, 0, 0, false},
          Case{1, 2, 1, 1, 500, 64, 64, true, true, 0, 0, false}, Case{2, 2, 2, 3, 130, 16, 40, false, true, 0, 5.0F, true},
          Case{2, 1, 1, 50, 50, 17, 9, true, true, 13, 0, true}, Case{1, 1, 1, 100, 40, 8, 8, true, false, 0, 0, false},
          Case{1, 4, 2, 33, 900, 20, 12, false, true, 0, 2.0F, false}, Case{2, 2, 1, 450, 70, 5, 3, true, true, 30, 0, true},
          Case{2, 1, 1, 9, 17, 1, 1, false, true, 0, 0, true}, Case{2, 2, 1, 40, 450, 16, 24, true, false, 0, 1.5F, false},
          // Keys and values in place; queries after the last half of a panel.
          Case{2, 3, 3, 49, 49, 32, 32, false, true, 0, 0, false}, Case{1, 2, 2, 50, 51, 40, 27, false, true, 0, 2.0F, true},
          Case{1, 1, 1, 81, 77, 64, 64, false, false, 0, 0, true}, Case{1, 4, 2, 257, 130, 16, 30, true, true, 0, 0, false},
          // Enough for tiles of bfloat16.
          Case{2, 4, 2, 100, 130, 64, 64, false, false, 0, 0, false}, Case{1, 2, 1, 83, 977, 33, 51, false, true, 0, 0, false},
          Case{1, 2, 2, 150, 150, 40, 80, true, false, 0, 0, true},
          Case{1, 2, 1, 170, 420, 64, 32, true, true, 77, 3.0F, true}}) {
      check(c);
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    const PoolScope scope(pool);
    check({2, 3, 3, 100, 100, 32, 32, true, false, 0, 0, false});
  }
}

TEST(KernelsAttention, NoThreadGetsAGroupOfHeadsMoreThanTheOthers) {
  const auto parts = [](int threads, std::int64_t groups, std::int64_t panels, std::int64_t most) {
    ThreadPool pool(threads);
    const PoolScope scope(pool);
    return up_div(panels, panels_per_task(groups, panels, most));
  };
  EXPECT_EQ(parts(2, 3, 7, 50), 2);
  EXPECT_EQ(parts(2, 1, 7, 50), 2);
  EXPECT_EQ(parts(3, 2, 7, 50), 3);
  // Enough heads, one thread, or a single panel: as few calls as `most` permits.
  EXPECT_EQ(parts(2, 4, 7, 50), 1);
  EXPECT_EQ(parts(2, 12, 7, 50), 1);
  EXPECT_EQ(parts(2, 12, 98, 50), 2);
  EXPECT_EQ(parts(1, 3, 7, 50), 1);
  EXPECT_EQ(parts(1, 3, 7, 3), 3);
  EXPECT_EQ(parts(2, 3, 1, 50), 1);
}

// Few queries and many take different code paths.
void masked_rows(std::int64_t n) {
  for_each_isa([n] {
    const std::int64_t size = 4;
    std::vector<float> q = random_floats(n * size, 1), k = random_floats(n * size, 2), v = random_floats(n * size, 3),
                       out(q.size(), 7.0F);
    std::vector<float> mask(static_cast<std::size_t>(n * n), 0.0F);
    for (std::int64_t j = 0; j < n; ++j) mask[static_cast<std::size_t>(2 * n + j)] = -std::numeric_limits<float>::infinity();
    AttentionArgs a;
    a.queries = a.keys = n, a.head_size = a.v_head_size = size;
    a.q = q.data(), a.k = k.data(), a.v = v.data(), a.out = out.data(), a.mask = mask.data(), a.mask_row = n;
    a.q_row = a.k_row = a.v_row = a.out_row = size;
    q[0] = std::numeric_limits<float>::quiet_NaN();
    attention_f32(a);
    for (std::int64_t x = 0; x < size; ++x) {
      EXPECT_TRUE(std::isnan(out[static_cast<std::size_t>(x)]));
      EXPECT_EQ(out[static_cast<std::size_t>(2 * size + x)], 0.0F);
      EXPECT_FALSE(std::isnan(out[static_cast<std::size_t>(size + x)]));
    }
  });
}

TEST(KernelsAttention, MaskedRowsGiveZerosAndNanStaysVisible) {
  masked_rows(6);
  masked_rows(21);
}

TEST(KernelsAttention, WhoSeesAKeyWithoutANumberGetsNoNumber) {
  for_each_isa([] {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      for (const std::int64_t from : {3, 18, 20}) {
        const std::int64_t n = 21, size = 4;
        std::vector<float> q(static_cast<std::size_t>(n * size), 1.0F), k = random_floats(n * size, 2),
                                                                        v = random_floats(n * size, 3), out(q.size(), 7.0F);
        k[static_cast<std::size_t>(from * size)] = bad;
        AttentionArgs a;
        a.queries = a.keys = n, a.head_size = a.v_head_size = size, a.causal = true;
        a.q = q.data(), a.k = k.data(), a.v = v.data(), a.out = out.data();
        a.q_row = a.k_row = a.v_row = a.out_row = size;
        attention_f32(a);
        for (std::int64_t i = 0; i < n; ++i) EXPECT_EQ(std::isnan(out[static_cast<std::size_t>(i * size)]), i >= from) << i;
      }
    }
  });
}

// Rows that are no distance apart are not taken for packed ones.
TEST(KernelsAttention, KeysThatShareARow) {
  for_each_isa([] {
    const std::int64_t queries = 40, keys = 20, size = 24;
    const std::vector<float> q = random_floats(queries * size, 1), k = random_floats(size, 2), v = random_floats(keys * size, 3);
    std::vector<float> out(q.size());
    AttentionArgs a;
    a.queries = queries, a.keys = keys, a.head_size = a.v_head_size = size;
    a.q = q.data(), a.k = k.data(), a.v = v.data(), a.out = out.data();
    a.q_row = a.v_row = a.out_row = size, a.k_row = 0;
    attention_f32(a);
    for (std::int64_t x = 0; x < size; ++x) {
      double mean = 0;
      for (std::int64_t j = 0; j < keys; ++j) mean += static_cast<double>(v[static_cast<std::size_t>(j * size + x)]) / keys;
      for (std::int64_t i = 0; i < queries; ++i) ASSERT_NEAR(out[static_cast<std::size_t>(i * size + x)], mean, 1e-6) << i;
    }
  });
}

// Scores far below the largest have weight 0; weights down to e^-87 of the largest are kept.
TEST(KernelsAttention, DistantScores) {
  for_each_isa([] {
    const std::int64_t n = 40;
    std::vector<float> q(static_cast<std::size_t>(n), 1.0F), k(q.size()), v(q.size(), 0.0F), out(q.size());
    for (std::size_t j = 1; j < k.size(); ++j) k[j] = -80.0F - static_cast<float>(j) * 0.25F;
    for (const std::size_t j : {std::size_t{20}, std::size_t{28}, std::size_t{39}}) {
      std::fill(v.begin(), v.end(), 0.0F);
      v[j] = 1e37F;
      AttentionArgs a;
      a.queries = a.keys = n, a.head_size = a.v_head_size = 1;
      a.q = q.data(), a.k = k.data(), a.v = v.data(), a.out = out.data();
      a.q_row = a.k_row = a.v_row = a.out_row = 1;
      attention_f32(a);
      const double want = j < 30 ? 1e37 * std::exp(static_cast<double>(k[j])) : 0.0;
      for (const float y : out) EXPECT_NEAR(y, want, want * 1e-5) << j;
    }
  });
}

// Positions past the end of shorter sequences are skipped, unless their contents affect the result.
TEST(KernelsAttention, MaskedPlacesBehindSequences) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for_each_isa([&] {
    const std::int64_t batch = 3, heads = 2, n = 70, size = 20, lengths[3] = {70, 33, 1};
    for (const float hidden : {-1e4F, -3.4028235e38F, -inf, -90.0F}) {
      for (const float odd : {0.0F, inf, nan}) {
        const std::int64_t all = batch * heads * n * size;
        std::vector<float> q = random_floats(all, 1, -2, 2), k = random_floats(all, 2, -2, 2), v = random_floats(all, 3),
                           out(q.size()), mask(static_cast<std::size_t>(batch * n), 0.5F);
        for (std::int64_t b = 0; b < batch; ++b) std::fill(mask.begin() + b * n + lengths[b], mask.begin() + (b + 1) * n, hidden);
        // Past the end of the second sequence, in the second head's values.
        if (odd != 0.0F) v[static_cast<std::size_t>((3 * n + 50) * size)] = odd;
        AttentionArgs a;
        a.batch = batch, a.heads = a.kv_heads = heads, a.queries = a.keys = n, a.head_size = a.v_head_size = size;
        a.q = q.data(), a.k = k.data(), a.v = v.data(), a.out = out.data(), a.mask = mask.data(), a.mask_batch = n;
        a.q_batch = a.k_batch = a.v_batch = a.out_batch = heads * n * size;
        a.q_head = a.k_head = a.v_head = a.out_head = n * size, a.q_row = a.k_row = a.v_row = a.out_row = size;
        a.scale = 0.3F;
        attention_f32(a);
        for (std::int64_t h = 0; h < batch * heads; ++h) {
          for (std::int64_t i = 0; i < n; ++i) {
            std::vector<double> p(static_cast<std::size_t>(n));
            double max = -1e300, sum = 0;
            for (std::int64_t j = 0; j < n; ++j) {
              double s = 0;
              for (std::int64_t x = 0; x < size; ++x)
                s += static_cast<double>(q[static_cast<std::size_t>((h * n + i) * size + x)]) *
                     k[static_cast<std::size_t>((h * n + j) * size + x)];
              p[static_cast<std::size_t>(j)] = s * 0.3 + mask[static_cast<std::size_t>(h / heads * n + j)];
              max = std::max(max, p[static_cast<std::size_t>(j)]);
            }
            for (double& s : p) sum += s = std::exp(s - max);
            for (std::int64_t x = 0; x < size; ++x) {
              const float got = out[static_cast<std::size_t>((h * n + i) * size + x)];
              if (odd != 0.0F && h == 3 && x == 0) {
                ASSERT_FALSE(std::isfinite(got)) << hidden;
                continue;
              }
              double want = 0;
              for (std::int64_t j = 0; j < n; ++j)
                want += p[static_cast<std::size_t>(j)] * v[static_cast<std::size_t>((h * n + j) * size + x)] / sum;
              ASSERT_NEAR(got, want, 3e-6) << hidden << " " << h << " " << i;
            }
          }
        }
      }
    }
  });
}

// One odd query among ordinary ones, at each place of a panel, and all of them by an infinite value.
TEST(KernelsAttention, MarksQueriesThatAreNotOrdinary) {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  for_each_isa([] {
    for (const std::int64_t n : {3, 20, 49}) {
      for (std::int64_t size : {5, 64}) {
        for (std::int64_t at = -2; at < n; ++at) {
          for (const float odd : {-kInf, kNan, 1e30F}) {
            std::vector<float> q = random_floats(n * size, 1), k = random_floats(n * size, 2, 0.5F, 1),
                               v = random_floats(n * size, 3), out(q.size()), mask(static_cast<std::size_t>(n * n), 0.0F);
            std::vector<std::uint8_t> marks(static_cast<std::size_t>(n), 0), want = marks;
            if (at >= 0) {
              std::fill_n(mask.begin() + at * n, n, odd);  // hidden whole, or too large
              want[static_cast<std::size_t>(at)] = 1;
            } else if (at == -1) {
              v.back() = odd == 1e30F ? kInf : odd;
              std::fill(want.begin(), want.end(), std::uint8_t{1});
            }
            AttentionArgs a;
            a.queries = a.keys = n, a.head_size = a.v_head_size = size;
            a.q = q.data(), a.k = k.data(), a.v = v.data(), a.out = out.data(), a.mask = mask.data(), a.mask_row = n;
            a.q_row = a.k_row = a.v_row = a.out_row = size;
            a.odd = marks.data(), a.odd_row = 1;
            attention_f32(a);
            ASSERT_EQ(marks, want) << n << " queries of " << size << ", " << odd << " at " << at;
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace sdx::cpu
