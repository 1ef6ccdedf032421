#include "kernels/cpu/image/pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/thread_pool.h"
#include "support/conv_problems.h"
#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using test::Axis;
using test::for_each_isa;
using test::Guarded;
using test::kNone;
using test::random_floats;

struct Case {
  ConvShape s;
  std::int64_t pad_end[3] = {0, 0, 0};
};

Case case_of(std::int64_t batch, std::int64_t channels, const Axis& d, const Axis& h, const Axis& w) {
  return {test::conv_shape(batch, channels, 1, 1, d, h, w), {d.pad_end, h.pad_end, w.pad_end}};
}

enum class Kind : std::uint8_t { max, average, padded_average };

float naive_window(const Case& c, const float* x, const std::int64_t (&o)[3], Kind kind) {
  const ConvShape& s = c.s;
  double sum = 0;
  float best = -std::numeric_limits<float>::infinity();
  std::int64_t inside = 0, padded = 0;
  std::int64_t k[3];
  for (k[0] = 0; k[0] < s.kernel[0]; ++k[0]) {
    for (k[1] = 0; k[1] < s.kernel[1]; ++k[1]) {
      for (k[2] = 0; k[2] < s.kernel[2]; ++k[2]) {
        bool in = true, in_padded = true;
        std::int64_t at = 0;
        for (int a = 0; a < 3; ++a) {
          const std::int64_t i = o[a] * s.stride[a] - s.pad[a] + k[a] * s.dilation[a];
          in = in && i >= 0 && i < s.in[a];
          in_padded = in_padded && i < s.in[a] + c.pad_end[a];
          at = at * s.in[a] + i;
        }
        padded += in_padded ? 1 : 0;
        if (!in) continue;
        ++inside;
        sum += static_cast<double>(x[at]);
        best = x[at] > best || std::isnan(x[at]) ? x[at] : best;
        if (std::isnan(best)) best = std::numeric_limits<float>::quiet_NaN();
      }
    }
  }
  if (kind == Kind::max) return best;
  return static_cast<float>(sum / static_cast<double>(kind == Kind::average ? inside : padded));
}

void check(const Case& c, const std::vector<float>& values, Kind kind) {
  const ConvShape& s = c.s;
  const std::int64_t planes = s.batch * s.in_channels;
  Guarded<float> x(planes * volume(s.in), 1, values), y(planes * volume(s.out), 3);
  if (kind == Kind::max) {
    max_pool_f32(s, x.data(), y.data());
  } else {
    average_pool_f32(s, c.pad_end, kind == Kind::padded_average, x.data(), y.data());
  }
  std::int64_t i = 0;
  for (std::int64_t p = 0; p < planes; ++p) {
    std::int64_t o[3];
    for (o[0] = 0; o[0] < s.out[0]; ++o[0]) {
      for (o[1] = 0; o[1] < s.out[1]; ++o[1]) {
        for (o[2] = 0; o[2] < s.out[2]; ++o[2], ++i) {
          const float want = naive_window(c, values.data() + p * volume(s.in), o, kind);
          if (std::isnan(want)) {
            ASSERT_TRUE(std::isnan(y[i])) << "element " << i;
          } else if (kind == Kind::max || std::isinf(want)) {
            ASSERT_EQ(y[i], want) << "element " << i;
          } else {
            ASSERT_NEAR(y[i], want, 1e-6) << "element " << i;  // a few ulp of sums of up to 49 values below 1
          }
        }
      }
    }
  }
}

std::vector<Case> cases() {
  return {
      case_of(2, 3, kNone, {9, 3, 2, 1, 1, 1}, {15, 3, 2, 1, 1, 1}),
      case_of(1, 2, kNone, {20, 5, 1, 1, 2, 2}, {20, 5, 1, 1, 2, 2}),
      case_of(1, 2, kNone, {7, 2, 2, 1, 0, 1}, {33, 2, 2, 1, 0, 1}),
      case_of(1, 2, {5, 2, 2, 1, 0, 1}, {6, 2, 2, 1, 1, 0}, {18, 2, 2, 1, 0, 0}),
      case_of(1, 2, {4, 3, 1, 2, 1, 1}, {5, 3, 1, 2, 2, 2}, {11, 3, 1, 2, 2, 2}),
      case_of(1, 1, kNone, {150, 3, 1, 1, 1, 1}, {70, 4, 1, 1, 1, 2}),  // several bands
      case_of(1, 2, kNone, {7, 7, 2, 1, 3, 3}, {9, 7, 2, 1, 3, 3}),
      case_of(1, 2, kNone, {6, 3, 3, 1, 0, 0}, {14, 3, 3, 1, 1, 0}),
      case_of(1, 2, kNone, {6, 2, 1, 1, 0, 0}, {14, 3, 2, 2, 1, 1}),
      case_of(3, 1, kNone, kNone, {37, 4, 4, 1, 0, 3}),
      case_of(1, 2, kNone, {3, 1, 1, 1, 0, 0}, {5, 1, 2, 1, 0, 0}),
      case_of(1, 1, kNone, {2, 3, 1, 1, 1, 1}, {1, 3, 1, 1, 1, 1}),
  };
}

TEST(KernelsPool, MatchTheDefinition) {
  for_each_isa([] {
    for (const Case& c : cases()) {
      const std::vector<float> values = random_floats(c.s.batch * c.s.in_channels * volume(c.s.in), 7);
      for (const Kind kind : {Kind::max, Kind::average, Kind::padded_average}) check(c, values, kind);
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

// In one channel of several: some windows hold them, others do not.
TEST(KernelsPool, NotANumberAndInfinities) {
  for_each_isa([] {
    for (const float special : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                                -std::numeric_limits<float>::infinity()}) {
      for (const Case& c : cases()) {
        std::vector<float> values = random_floats(c.s.batch * c.s.in_channels * volume(c.s.in), 9);
        values[values.size() / 2] = special;
        values[values.size() - 1] = special;
        check(c, values, Kind::max);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

TEST(KernelsPool, ThreadCountsAgree) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    const PoolScope scope(pool);
    const Case c = case_of(3, 40, kNone, {30, 3, 2, 1, 1, 1}, {31, 3, 2, 1, 1, 1});
    const std::vector<float> values = random_floats(120 * volume(c.s.in), 5);
    check(c, values, Kind::max);
    check(c, values, Kind::average);
  }
}

}  // namespace
}  // namespace sdx::cpu
