#include <gtest/gtest.h>

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/softmax.h"
#include "kernels/cpu/test_util.h"

namespace sdx::cpu {
namespace {

using test::for_each_isa;
using test::Guarded;
using test::random_floats;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Shape {
  std::int64_t outer, axis, inner;
};
const std::vector<Shape> kShapes = {{1, 1, 1},  {3, 5, 1},   {2, 8, 1},    {4, 1000, 1}, {1, 17, 3},
                                    {2, 9, 64}, {3, 4, 131}, {1, 2000, 5}, {70, 33, 1},  {5, 1, 7}};

TEST(KernelsRows, SoftmaxMatchesTheDefinition) {
  for_each_isa([] {
    for (const Shape& s : kShapes) {
      const std::int64_t n = s.outer * s.axis * s.inner;
      const std::vector<float> v = random_floats(n, 1, -20, 20);
      Guarded<float> x(n, 1, v), y(n, 3), z(n, 2);
      softmax_f32(x.data(), y.data(), s.outer, s.axis, s.inner);
      log_softmax_f32(x.data(), z.data(), s.outer, s.axis, s.inner);
      for (std::int64_t o = 0; o < s.outer; ++o) {
        for (std::int64_t i = 0; i < s.inner; ++i) {
          const auto at = [&](std::int64_t a) { return (o * s.axis + a) * s.inner + i; };
          double max = -1e300, sum = 0;
          for (std::int64_t a = 0; a < s.axis; ++a) max = std::max(max, static_cast<double>(x[at(a)]));
          for (std::int64_t a = 0; a < s.axis; ++a) sum += std::exp(x[at(a)] - max);
          for (std::int64_t a = 0; a < s.axis; ++a) {
            const double want = std::exp(x[at(a)] - max) / sum;
            ASSERT_NEAR(y[at(a)], want, 3e-6 * want + 1e-12);
            ASSERT_NEAR(z[at(a)], x[at(a)] - max - std::log(sum), 6e-6);
          }
        }
      }
      softmax_f32(x.data(), x.data(), s.outer, s.axis, s.inner);
      ASSERT_EQ(std::memcmp(x.data(), y.data(), static_cast<std::size_t>(n) * 4), 0);
    }
  });
}

TEST(KernelsRows, SoftmaxSpecialValues) {
  for_each_isa([] {
    for (const std::int64_t inner : {1, 2}) {
      for (const std::int64_t axis : {3, 40}) {
        std::vector<float> x(static_cast<std::size_t>(axis * inner), 1.0F);
        std::vector<float> y(x.size());
        x[static_cast<std::size_t>(inner)] = kNan;
        softmax_f32(x.data(), y.data(), 1, axis, inner);
        for (std::int64_t a = 0; a < axis; ++a) EXPECT_TRUE(std::isnan(y[static_cast<std::size_t>(a * inner)]));
        x[static_cast<std::size_t>(inner)] = -kInf;
        softmax_f32(x.data(), y.data(), 1, axis, inner);
        EXPECT_EQ(y[static_cast<std::size_t>(inner)], 0.0F);
        EXPECT_NEAR(y[0], 1.0 / static_cast<double>(axis - 1), 1e-6);
        std::fill(x.begin(), x.end(), -kInf);
        softmax_f32(x.data(), y.data(), 1, axis, inner);
        EXPECT_TRUE(std::isnan(y[0]));
        std::fill(x.begin(), x.end(), 3e38F);
        softmax_f32(x.data(), y.data(), 1, axis, inner);
        EXPECT_NEAR(y[0], 1.0 / static_cast<double>(axis), 1e-6);
      }
    }
  });
}

TEST(KernelsRows, ReductionsMatch) {
  for_each_isa([] {
    for (const Shape& s : kShapes) {
      const std::int64_t n = s.outer * s.axis * s.inner;
      Guarded<float> x(n, 1, random_floats(n, 2, -1, 3));
      Guarded<float> y(s.outer * s.inner, 1);
      for (const Reduce op : {Reduce::sum, Reduce::mean, Reduce::max, Reduce::min, Reduce::sum_square, Reduce::sum_abs}) {
        reduce_f32(op, x.data(), y.data(), s.outer, s.axis, s.inner);
        for (std::int64_t o = 0; o < s.outer; ++o) {
          for (std::int64_t i = 0; i < s.inner; ++i) {
            double sum = 0, sq = 0, ab = 0, mx = -1e300, mn = 1e300;
            for (std::int64_t a = 0; a < s.axis; ++a) {
              const double v = x[(o * s.axis + a) * s.inner + i];
              sum += v, sq += v * v, ab += std::fabs(v), mx = std::max(mx, v), mn = std::min(mn, v);
            }
            const double want = op == Reduce::sum          ? sum
                                : op == Reduce::mean       ? sum / static_cast<double>(s.axis)
                                : op == Reduce::max        ? mx
                                : op == Reduce::min        ? mn
                                : op == Reduce::sum_square ? sq
                                                           : ab;
            ASSERT_NEAR(y[o * s.inner + i], want, 1e-6 * (1 + sq)) << static_cast<int>(op);
          }
        }
      }
      if (s.axis < 3) continue;
      x[s.inner * 2] = kNan;
      for (const Reduce op : {Reduce::max, Reduce::min, Reduce::sum}) {
        reduce_f32(op, x.data(), y.data(), s.outer, s.axis, s.inner);
        ASSERT_TRUE(std::isnan(y[0])) << static_cast<int>(op);
      }
    }
  });
}

TEST(KernelsRows, LongSumsStayPrecise) {
  const std::vector<float> x(4 << 20, 0.1F);
  for_each_isa([&] {
    float y = 0;
    reduce_f32(Reduce::sum, x.data(), &y, 1, static_cast<std::int64_t>(x.size()), 1);
    EXPECT_NEAR(y / (static_cast<double>(0.1F) * static_cast<double>(x.size())), 1.0, 3e-5);
  });
}

TEST(KernelsRows, LayerNormAndItsVariants) {
  for_each_isa([] {
    for (const std::int64_t n : {1, 3, 8, 30, 768}) {
      for (int variant = 0; variant < 8; ++variant) {
        const std::int64_t rows = 3;
        const bool rms = (variant & 1) != 0, skip = (variant & 2) != 0, extra = (variant & 4) != 0;
        Guarded<float> x(rows * n, 1, random_floats(rows * n, 1, 1, 5)), sk(rows * n, 2, random_floats(rows * n, 2));
        Guarded<float> scale(n, 1, random_floats(n, 3)), bias(n, 3, random_floats(n, 4)), sb(n, 1, random_floats(n, 5));
        Guarded<float> y(rows * n, 1), sum(rows * n, 1), mean(rows), inv(rows);
        LayerNormArgs a;
        a.x = x.data(), a.scale = scale.data(), a.y = y.data(), a.rms = rms, a.epsilon = 1e-3F;
        if (skip) a.skip = sk.data();
        if (skip && extra) a.skip_bias = sb.data(), a.sum_out = sum.data();
        if (extra) a.bias = bias.data(), a.mean_out = mean.data(), a.inv_std_out = inv.data();
        layer_norm_f32(a, rows, n);
        for (std::int64_t r = 0; r < rows; ++r) {
          std::vector<double> v(static_cast<std::size_t>(n));
          double m = 0, var = 0;
          for (std::int64_t i = 0; i < n; ++i) {
            double t = x[r * n + i];
            if (skip) t += sk[r * n + i];
            if (skip && extra) t += sb[i];
            v[static_cast<std::size_t>(i)] = t;
            m += t / static_cast<double>(n);
          }
          if (rms) m = 0;
          for (const double t : v) var += (t - m) * (t - m) / static_cast<double>(n);
          const double is = 1 / std::sqrt(var + static_cast<double>(1e-3F));
          for (std::int64_t i = 0; i < n; ++i) {
            const double want = (v[static_cast<std::size_t>(i)] - m) * is * scale[i] + (extra ? bias[i] : 0.0F);
            ASSERT_NEAR(y[r * n + i], want, 2e-5) << variant;
            if (skip && extra) {
              ASSERT_NEAR(sum[r * n + i], v[static_cast<std::size_t>(i)], 1e-6);
            }
          }
          if (extra) {
            ASSERT_NEAR(mean[r], m, 1e-5);
            ASSERT_NEAR(inv[r] / is, 1, 1e-5);
          }
        }
      }
    }
  });
}

TEST(KernelsRows, GroupNormAndChannelAffine) {
  for_each_isa([] {
    const std::int64_t batch = 2, channels = 6, inner = 35;
    const std::int64_t n = batch * channels * inner;
    Guarded<float> x(n, 1, random_floats(n, 1, -1, 4)), y(n, 2), scale(channels, 1, random_floats(channels, 2)),
        bias(channels, 1, random_floats(channels, 3));
    for (const std::int64_t groups : {1, 2, 6}) {
      group_norm_f32(x.data(), scale.data(), bias.data(), 1e-5F, y.data(), batch, channels, groups, inner);
      const std::int64_t per = channels / groups * inner;
      for (std::int64_t g = 0; g < batch * groups; ++g) {
        double m = 0, var = 0;
        for (std::int64_t i = 0; i < per; ++i) m += x[g * per + i] / static_cast<double>(per);
        for (std::int64_t i = 0; i < per; ++i) var += (x[g * per + i] - m) * (x[g * per + i] - m) / static_cast<double>(per);
        for (std::int64_t i = 0; i < per; ++i) {
          const std::int64_t c = (g * per + i) / inner % channels;
          ASSERT_NEAR(y[g * per + i], (x[g * per + i] - m) / std::sqrt(var + 1e-5) * scale[c] + bias[c], 1e-5);
        }
      }
    }
    channel_affine_f32(x.data(), scale.data(), bias.data(), {Unary::relu}, y.data(), batch, channels, inner);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t c = i / inner % channels;
      ASSERT_NEAR(y[i], std::max(0.0F, x[i] * scale[c] + bias[c]), 1e-6);
    }
  });
}

TEST(KernelsRows, LrnMatchesTheDefinition) {
  for_each_isa([] {
    const std::int64_t batch = 2, channels = 7, inner = 75;
    const std::int64_t n = batch * channels * inner;
    Guarded<float> x(n, 1, random_floats(n, 1, -9, 9)), y(n, 2);
    for (const std::int64_t size : {1, 2, 3, 5, 20}) {
      for (const float beta : {0.75F, 0.5F, 1.0F, 0.6F}) {
        lrn_f32(x.data(), y.data(), batch, channels, inner, size, 0.3F, beta, 1.5F);
        for (std::int64_t b = 0; b < batch; ++b) {
          for (std::int64_t c = 0; c < channels; ++c) {
            for (std::int64_t i = 0; i < inner; ++i) {
              double sum = 0;
              for (std::int64_t k = std::max<std::int64_t>(0, c - (size - 1) / 2); k <= std::min(channels - 1, c + size / 2);
                   ++k) {
                const double v = x[(b * channels + k) * inner + i];
                sum += v * v;
              }
              const std::int64_t at = (b * channels + c) * inner + i;
              const double want =
                  x[at] / std::pow(1.5 + static_cast<double>(0.3F) / static_cast<double>(size) * sum, static_cast<double>(beta));
              ASSERT_NEAR(y[at], want, 3e-6 * std::fabs(want) + 1e-7);
            }
          }
        }
      }
    }
  });
}

TEST(KernelsRows, ThreadCountsAgree) {
  const std::int64_t n = 64 * 500;
  const std::vector<float> x = random_floats(n, 1);
  std::vector<float> one(x.size()), many(x.size());
  for (const std::int64_t inner : {1, 50}) {
    {
      ThreadPool pool(1);
      const PoolScope scope(pool);
      softmax_f32(x.data(), one.data(), 64, 500 / inner, inner);
    }
    ThreadPool pool(3);
    const PoolScope scope(pool);
    softmax_f32(x.data(), many.data(), 64, 500 / inner, inner);
    EXPECT_EQ(one, many);
  }
}

}  // namespace
}  // namespace sdx::cpu
