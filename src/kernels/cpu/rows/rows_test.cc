#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "base/thread_pool.h"
#include "kernels/cpu/order/reductions.h"
#include "kernels/cpu/order/top_k.h"
#include "kernels/cpu/rows/norm.h"
#include "kernels/cpu/rows/reduce.h"
#include "kernels/cpu/rows/softmax.h"
#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

// -0 differs from 0 here, and NaN equals itself.
std::uint32_t bits(float v) { return std::bit_cast<std::uint32_t>(v); }

using test::for_each_isa;
using test::Guarded;
using test::random_floats;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Shape {
  std::int64_t outer, axis, inner;
};
const std::vector<Shape> kShapes = {{1, 1, 1},  {3, 5, 1},   {2, 8, 1},    {4, 1000, 1}, {1, 17, 3},
                                    {2, 9, 64}, {3, 4, 131}, {1, 2000, 5}, {70, 33, 1},  {5, 1, 7},
                                    {70, 3, 1}, {35, 15, 1}, {5, 20, 1},   {3, 49, 1},   {2, 64, 1}};

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

constexpr Reduce kReductions[] = {Reduce::sum,  Reduce::mean,    Reduce::max,     Reduce::min,     Reduce::sum_square,
                                  Reduce::norm, Reduce::sum_abs, Reduce::product, Reduce::log_sum, Reduce::log_sum_exp};

double reduced(Reduce op, const std::vector<double>& v) {
  double sum = 0, sq = 0, ab = 0, product = 1, mx = v[0], mn = v[0];
  for (const double x : v) {
    sum += x, sq += x * x, ab += std::fabs(x), product *= x;
    mx = mx != mx || x > mx || x != x ? (mx != mx ? mx : x) : mx;
    mn = mn != mn || x < mn || x != x ? (mn != mn ? mn : x) : mn;
  }
  switch (op) {
    case Reduce::sum: return sum;
    case Reduce::mean: return sum / static_cast<double>(v.size());
    case Reduce::max: return mx;
    case Reduce::min: return mn;
    case Reduce::sum_square: return sq;
    case Reduce::sum_abs: return ab;
    case Reduce::norm: return std::sqrt(sq);
    case Reduce::product: return product;
    case Reduce::log_sum: return std::log(sum);
    case Reduce::log_sum_exp: break;
  }
  double all = 0;
  if (std::isinf(mx)) return mx;
  for (const double x : v) all += std::exp(x - mx);
  return mx + std::log(all);
}

TEST(KernelsRows, ReductionsMatch) {
  for_each_isa([] {
    for (const Shape& s : kShapes) {
      const std::int64_t n = s.outer * s.axis * s.inner;
      Guarded<float> x(n, 1, random_floats(n, 2, -1, 3));
      Guarded<float> y(s.outer * s.inner, 1);
      for (const bool special : {false, true}) {
        if (special && s.axis < 3) continue;
        if (special) x[s.inner * 2] = kNan;
        for (const Reduce op : kReductions) {
          reduce_f32(op, x.data(), y.data(), s.outer, s.axis, s.inner);
          for (std::int64_t o = 0; o < s.outer; ++o) {
            for (std::int64_t i = 0; i < s.inner; ++i) {
              std::vector<double> v;
              double sq = 0;
              for (std::int64_t a = 0; a < s.axis; ++a) {
                v.push_back(x[(o * s.axis + a) * s.inner + i]);
                sq += v.back() * v.back();
              }
              const double want = reduced(op, v), got = y[o * s.inner + i];
              if (std::isnan(want)) {
                ASSERT_TRUE(std::isnan(got)) << static_cast<int>(op);
                continue;
              }
              // The logarithm of a sum near 0 magnifies its error.
              const double off = op == Reduce::log_sum ? 1e-6 * (1 + sq) / std::exp(want) : 0;
              ASSERT_NEAR(got, want, 1e-6 * (1 + (op == Reduce::product ? std::fabs(want) : sq)) + off) << static_cast<int>(op);
            }
          }
        }
      }
    }
  });
}

// Short rows are reduced side by side: a row's result does not depend on its position.
TEST(KernelsRows, ShortRowsGiveTheSameInEveryPlace) {
  for_each_isa([] {
    for (std::int64_t axis = 1; axis < 150; axis += axis < 36 ? 1 : 13) {
      const std::int64_t outer = 37;
      const std::vector<float> row = random_floats(axis, 3, -1, 3);
      Guarded<float> x(outer * axis, 1), y(outer, 1), alone(1, 1);
      for (std::int64_t i = 0; i < outer * axis; ++i) x[i] = row[static_cast<std::size_t>(i % axis)];
      for (const Reduce op : kReductions) {
        reduce_f32(op, x.data(), y.data(), outer, axis, 1);
        reduce_f32(op, x.data(), alone.data(), 1, axis, 1);
        for (std::int64_t o = 0; o < outer; ++o) ASSERT_EQ(bits(y[o]), bits(alone[0])) << axis << " at " << o;
      }
    }
  });
}

TEST(KernelsRows, ReductionsAtTheEdgesOfTheRange) {
  struct Row {
    Reduce op;
    float fill, first, want;
  };
  const Row rows[] = {{Reduce::norm, 0.0F, 1e30F, 1e30F},
                      {Reduce::norm, 0.0F, 3e-30F, 3e-30F},
                      {Reduce::norm, 0.0F, 0.0F, 0.0F},
                      {Reduce::norm, 1.0F, kInf, kInf},
                      {Reduce::product, 1e30F, 0.0F, 0.0F},
                      {Reduce::log_sum_exp, -kInf, -kInf, -kInf},
                      {Reduce::log_sum_exp, 5.0F, kInf, kInf},
                      {Reduce::log_sum_exp, -kInf, 7.0F, 7.0F},
                      {Reduce::max, -kInf, kInf, kInf},
                      {Reduce::min, kInf, -kInf, -kInf},
                      {Reduce::log_sum_exp, -1e38F, 88.0F, 88.0F},
                      {Reduce::log_sum, 0.0F, 0.0F, -kInf}};
  for_each_isa([&] {
    for (const std::int64_t inner : {1, 3, 40}) {
      for (const std::int64_t axis : {2, 9, 41}) {
        for (const Row& r : rows) {
          std::vector<float> x(static_cast<std::size_t>(axis * inner), r.fill), y(static_cast<std::size_t>(inner));
          for (std::int64_t i = 0; i < inner; ++i) x[static_cast<std::size_t>((axis - 1) * inner + i)] = r.first;
          // Zero times a product that overflows float, but not double.
          if (r.op == Reduce::product && axis > 10) continue;
          reduce_f32(r.op, x.data(), y.data(), 1, axis, inner);
          for (const float got : y) {
            if (std::isfinite(r.want)) {
              ASSERT_NEAR(got, r.want, 1e-6 * std::fabs(r.want)) << static_cast<int>(r.op);
            } else {
              ASSERT_EQ(got, r.want) << static_cast<int>(r.op);
            }
          }
        }
      }
    }
  });
}

template <class T>
void check_ints(DataType type) {
  for (const Shape& s : kShapes) {
    const std::int64_t n = s.outer * s.axis * s.inner;
    std::vector<T> values(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) {
      values[static_cast<std::size_t>(i)] = static_cast<T>(static_cast<std::uint64_t>(i + 3) * 0x9E3779B97F4A7C15U);
    }
    Guarded<T> x(n, 1, values), y(s.outer * s.inner, 1);
    for (const Reduce op : {Reduce::sum, Reduce::max, Reduce::min}) {
      ASSERT_TRUE(reduces_typed(op, type));
      reduce_typed(op, type, x.data(), y.data(), {s.outer, s.axis, s.inner});
      for (std::int64_t o = 0; o < s.outer; ++o) {
        for (std::int64_t i = 0; i < s.inner; ++i) {
          std::uint64_t sum = 0;
          T best = x[o * s.axis * s.inner + i];
          for (std::int64_t a = 0; a < s.axis; ++a) {
            const T v = x[(o * s.axis + a) * s.inner + i];
            sum += static_cast<std::uint64_t>(v);
            best = op == Reduce::max ? std::max(best, v) : std::min(best, v);
          }
          ASSERT_EQ(y[o * s.inner + i], op == Reduce::sum ? static_cast<T>(sum) : best);
        }
      }
    }
  }
}

TEST(KernelsRows, ReductionsOfIntegers) {
  for_each_isa([] {
    check_ints<std::uint8_t>(DataType::uint8);
    check_ints<std::int8_t>(DataType::int8);
    check_ints<std::uint16_t>(DataType::uint16);
    check_ints<std::int16_t>(DataType::int16);
    check_ints<std::uint32_t>(DataType::uint32);
    check_ints<std::int32_t>(DataType::int32);
    check_ints<std::uint64_t>(DataType::uint64);
    check_ints<std::int64_t>(DataType::int64);
  });
  EXPECT_FALSE(reduces_typed(Reduce::sum, DataType::boolean));
  EXPECT_FALSE(reduces_typed(Reduce::sum, DataType::float32));
}

TEST(KernelsRows, ReductionsOfDoubles) {
  for_each_isa([] {
    for (const Shape& s : kShapes) {
      const std::int64_t n = s.outer * s.axis * s.inner;
      for (const bool with_nan : {false, true}) {
        std::vector<double> values(static_cast<std::size_t>(n));
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i * 7919 % 1001) - 500.0;
        if (with_nan) values[values.size() / 2] = std::nan("");
        Guarded<double> x(n, 1, values), y(s.outer * s.inner, 1);
        for (const Reduce op : {Reduce::sum, Reduce::max, Reduce::min}) {
          reduce_typed(op, DataType::float64, x.data(), y.data(), {s.outer, s.axis, s.inner});
          for (std::int64_t o = 0; o < s.outer * s.inner; ++o) {
            const std::int64_t first = o / s.inner * s.axis * s.inner + o % s.inner;
            double want = x[first];
            for (std::int64_t a = 1; a < s.axis; ++a) {
              const double v = x[first + a * s.inner];
              const double best = op == Reduce::max ? std::max(want, v) : std::min(want, v);
              want = op == Reduce::sum || want != want || v != v ? want + v : best;
            }
            ASSERT_TRUE(y[o] == want || (y[o] != y[o] && want != want)) << y[o] << " for " << want;  // sums are exact
          }
        }
      }
    }
  });
}

TEST(KernelsRows, ArgExtreme) {
  for_each_isa([] {
    for (const Shape& s : kShapes) {
      const std::int64_t n = s.outer * s.axis * s.inner;
      for (int variant = 0; variant < 12; ++variant) {
        const bool max = variant % 2 != 0, last = variant % 4 > 1;
        // Many equal values; then NaNs among them; then only infinities.
        std::vector<float> values = random_floats(n, static_cast<unsigned>(variant), -3, 3);
        for (std::size_t i = 0; i < values.size(); ++i) {
          values[i] = std::round(values[i]);
          if (variant >= 4 && variant < 8 && i % 5 == 3) values[i] = kNan;
          if (variant >= 8) values[i] = max ? -kInf : kInf;
        }
        Guarded<float> x(n, 1, values);
        Guarded<std::int64_t> y(s.outer * s.inner);
        arg_extreme_f32(x.data(), y.data(), s.outer, s.axis, s.inner, max, last);
        for (std::int64_t o = 0; o < s.outer; ++o) {
          for (std::int64_t i = 0; i < s.inner; ++i) {
            std::int64_t at = 0;
            for (std::int64_t a = 1; a < s.axis; ++a) {
              const float v = x[(o * s.axis + a) * s.inner + i], best = x[(o * s.axis + at) * s.inner + i];
              const bool same = v == best || (v != v && best != best);
              const bool above = (v != v && best == best) || (best == best && (max ? v > best : v < best));
              if (above || (same && last)) at = a;
            }
            ASSERT_EQ(y[o * s.inner + i], at) << "variant " << variant;
          }
        }
      }
    }
    volatile long double two = 2;
    ASSERT_EQ(std::sqrt(two * two), two) << "the x87 state is not as it was";
  });
}

TEST(KernelsRows, TopK) {
  for_each_isa([] {
    for (const std::int64_t n : {1, 7, 33, 100, 1000, 5000}) {
      for (int variant = 0; variant < 8; ++variant) {
        const bool largest = variant % 2 != 0;
        std::vector<float> values = random_floats(n, static_cast<unsigned>(variant), -50, 50);
        for (std::size_t i = 0; i < values.size(); ++i) {
          if ((variant & 2) != 0) values[i] = std::round(values[i] / 5);  // -0 among them
          if ((variant & 4) != 0 && i % 7 == 2) values[i] = i % 3 == 0 ? kNan : (i % 2 == 0 ? kInf : -kInf);
        }
        std::vector<std::int64_t> order(values.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
        std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
          const float x = values[static_cast<std::size_t>(a)], y = values[static_cast<std::size_t>(b)];
          if (x != x || y != y) return (x != x) != (y != y) && (x != x) == largest;
          return largest ? x > y : x < y;
        });
        Guarded<float> x(n, 1, values);
        for (const std::int64_t k : {std::int64_t{1}, std::int64_t{2}, std::int64_t{5}, std::int64_t{8}, std::int64_t{9},
                                     std::int64_t{32}, std::int64_t{33}, n / 20, n / 3, n}) {
          if (k < 1 || k > n) continue;
          Guarded<float> top(k, 1);
          Guarded<std::int64_t> at(k);
          Guarded<std::uint64_t> scratch(n);
          top_k({DataType::float32, n, k, 1, largest}, x.data(), top.data(), at.data(), scratch.data());
          for (std::int64_t i = 0; i < k; ++i) {
            ASSERT_EQ(at[i], order[static_cast<std::size_t>(i)]) << "k " << k << " variant " << variant;
            ASSERT_EQ(bits(top[i]), bits(x[at[i]]));
          }
          if (k > kMostTopColumns) continue;
          // Columns of any number, each the row rotated by the column's number of elements.
          for (const std::int64_t columns : {1, 3, 21}) {
            Guarded<float> table(n * columns, 1), tops(k * columns, 1);
            Guarded<std::int64_t> places(k * columns);
            for (std::int64_t i = 0; i < n * columns; ++i) table[i] = x[(i / columns + i % columns) % n];
            top_k_columns_f32(table.data(), n, columns, columns, k, largest, tops.data(), places.data());
            for (std::int64_t c = 0; c < columns; ++c) {
              std::vector<float> row(static_cast<std::size_t>(n));
              for (std::int64_t i = 0; i < n; ++i) row[static_cast<std::size_t>(i)] = table[i * columns + c];
              top_k({DataType::float32, n, k, 1, largest}, row.data(), top.data(), at.data(), scratch.data());
              for (std::int64_t i = 0; i < k; ++i) {
                ASSERT_EQ(places[i * columns + c], at[i]) << columns << " columns, k " << k << " variant " << variant;
                ASSERT_EQ(bits(tops[i * columns + c]), bits(top[i]));
              }
            }
          }
        }
      }
    }
  });
}

TEST(KernelsRows, LpNorm) {
  for_each_isa([] {
    for (const Shape& s : kShapes) {
      const std::int64_t n = s.outer * s.axis * s.inner;
      for (const float size : {1.0F, 1e30F, 1e-30F, 0.0F}) {
        for (const bool squares : {false, true}) {
          Guarded<float> x(n, 1, random_floats(n, 1, -size, size)), y(n, 1);
          lp_norm_f32(x.data(), y.data(), s.outer, s.axis, s.inner, squares);
          for (std::int64_t o = 0; o < s.outer; ++o) {
            for (std::int64_t i = 0; i < s.inner; ++i) {
              double sum = 0;
              const auto at = [&](std::int64_t a) { return (o * s.axis + a) * s.inner + i; };
              for (std::int64_t a = 0; a < s.axis; ++a)
                sum += std::pow(std::fabs(static_cast<double>(x[at(a)])), squares ? 2 : 1);
              const double by = squares ? std::sqrt(sum) : sum;
              for (std::int64_t a = 0; a < s.axis; ++a) {
                ASSERT_NEAR(y[at(a)], by == 0 ? 0 : x[at(a)] / by, 1e-6) << size;
              }
            }
          }
        }
      }
    }
  });
}

TEST(KernelsRows, MeanVarianceNorm) {
  for_each_isa([] {
    for (const Shape& s : kShapes) {
      const std::int64_t n = s.outer * s.axis * s.inner;
      for (const float mean : {0.0F, 3.0F, 1e6F}) {
        // One group does not vary at all.
        Guarded<float> x(n, 1, random_floats(n, 1, mean - 1, mean + 1)), y(n, 1);
        for (std::int64_t o = 0; o < s.outer; ++o) {
          for (std::int64_t i = 0; i < s.inner; ++i) x[o * s.axis * s.inner + i] = 0.1F;
        }
        mean_variance_norm_f32(x.data(), y.data(), s.outer, s.axis, s.inner);
        for (std::int64_t g = 0; g < s.axis; ++g) {
          double m = 0, var = 0;
          const auto each = [&](auto&& fn) {
            for (std::int64_t o = 0; o < s.outer; ++o) {
              for (std::int64_t i = 0; i < s.inner; ++i) fn((o * s.axis + g) * s.inner + i);
            }
          };
          const auto count = static_cast<double>(s.outer * s.inner);
          each([&](std::int64_t at) { m += x[at]; });
          m /= count;
          each([&](std::int64_t at) { var += (x[at] - m) * (x[at] - m); });
          const double by = std::sqrt(var / count) + 1e-9;
          each([&](std::int64_t at) { ASSERT_NEAR(y[at], (x[at] - m) / by, 3e-6 * (1 + std::fabs((x[at] - m) / by))); });
        }
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

// For values about a million, a float's mean has steps of 1/16.
TEST(KernelsRows, NormalisingFarFromZero) {
  for_each_isa([] {
    for (const std::int64_t n : {3, 30, 768, 5000}) {
      Guarded<float> x(n, 1, random_floats(n, 1, 1e6F - 2, 1e6F + 2)), y(n, 1), z(n, 2), mean(1);
      const std::vector<float> ones(static_cast<std::size_t>(n), 1.0F);
      LayerNormArgs a;
      a.x = x.data(), a.scale = ones.data(), a.y = y.data(), a.epsilon = 1e-5F, a.mean_out = mean.data();
      layer_norm_f32(a, 1, n);
      group_norm_f32(x.data(), nullptr, nullptr, 1e-5F, z.data(), 1, 1, 1, n);
      double m = 0, var = 0;
      for (std::int64_t i = 0; i < n; ++i) m += static_cast<double>(x[i]) / static_cast<double>(n);
      for (std::int64_t i = 0; i < n; ++i) var += (x[i] - m) * (x[i] - m) / static_cast<double>(n);
      ASSERT_NEAR(mean[0], m, 0.04);
      for (std::int64_t i = 0; i < n; ++i) {
        ASSERT_NEAR(y[i], (x[i] - m) / std::sqrt(var + 1e-5), 1e-4) << n;
        ASSERT_NEAR(z[i], (x[i] - m) / std::sqrt(var + 1e-5), 1e-4) << n;
      }
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
