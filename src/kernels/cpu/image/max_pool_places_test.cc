#include "kernels/cpu/image/max_pool_places.h"

#include <gtest/gtest.h>

#include "base/thread_pool.h"
#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using test::for_each_isa;
using test::Guarded;
using test::random_floats;

struct Axis {
  std::int64_t in, kernel, stride = 1, dilation = 1, pad = 0, out = 0;
};

ConvShape shape_of(std::int64_t batch, std::int64_t channels, const Axis& d, const Axis& h, const Axis& w) {
  ConvShape s;
  s.batch = batch, s.in_channels = channels;
  const Axis axes[3] = {d, h, w};
  for (int i = 0; i < 3; ++i) {
    s.in[i] = axes[i].in, s.kernel[i] = axes[i].kernel, s.stride[i] = axes[i].stride, s.dilation[i] = axes[i].dilation;
    s.pad[i] = axes[i].pad, s.out[i] = axes[i].out;
  }
  return s;
}

void check(const ConvShape& s, const std::vector<float>& values) {
  SCOPED_TRACE(::testing::Message() << s.in[1] << "x" << s.in[2] << ", kernel " << s.kernel[2] << ", stride " << s.stride[2]);
  const std::int64_t planes = s.batch * s.in_channels, in = volume(s.in), out = volume(s.out);
  Guarded<float> x(planes * in, 1, values), y(planes * out, 3);
  Guarded<std::int64_t> places(planes * out, 1);
  max_pool_places_f32(s, x.data(), y.data(), places.data());
  for (std::int64_t p = 0; p < planes; ++p) {
    for (std::int64_t o = 0; o < out; ++o) {
      float best = -std::numeric_limits<float>::infinity();
      std::int64_t where = -1;
      const std::int64_t o3[3] = {o / (s.out[1] * s.out[2]), o / s.out[2] % s.out[1], o % s.out[2]};
      for (std::int64_t k = 0; k < volume(s.kernel); ++k) {
        const std::int64_t k3[3] = {k / (s.kernel[1] * s.kernel[2]), k / s.kernel[2] % s.kernel[1], k % s.kernel[2]};
        std::int64_t at = 0;
        bool inside = true;
        for (int i = 0; i < 3; ++i) {
          const std::int64_t position = o3[i] * s.stride[i] - s.pad[i] + k3[i] * s.dilation[i];
          inside = inside && position >= 0 && position < s.in[i];
          at = at * s.in[i] + position;
        }
        if (!inside) continue;
        const float v = x[p * in + at];
        if (v > best || where < 0 || v != v) best = v, where = p * in + at;
      }
      ASSERT_EQ(places[p * out + o], where) << "plane " << p << ", result " << o;
      if (best == best) {
        ASSERT_EQ(y[p * out + o], best);
      } else {
        ASSERT_NE(y[p * out + o], y[p * out + o]);
      }
    }
  }
}

TEST(MaxPoolPlaces, MatchesAPlainLoop) {
  const ConvShape shapes[] = {
      shape_of(2, 3, {1, 1, 1, 1, 0, 1}, {28, 2, 2, 1, 0, 14}, {28, 2, 2, 1, 0, 14}),
      shape_of(2, 3, {1, 1, 1, 1, 0, 1}, {7, 3, 2, 1, 1, 4}, {9, 3, 2, 1, 1, 5}),
      shape_of(1, 2, {1, 1, 1, 1, 0, 1}, {35, 3, 1, 1, 1, 35}, {39, 3, 1, 1, 1, 39}),
      shape_of(1, 2, {1, 1, 1, 1, 0, 1}, {9, 3, 3, 1, 0, 3}, {70, 3, 3, 1, 0, 23}),
      shape_of(1, 2, {1, 1, 1, 1, 0, 1}, {9, 2, 1, 2, 1, 9}, {67, 3, 2, 2, 2, 34}),
      shape_of(1, 2, {6, 2, 2, 1, 0, 3}, {6, 2, 2, 1, 0, 3}, {40, 2, 2, 1, 0, 20}),
      shape_of(1, 1, {1, 1, 1, 1, 0, 1}, {2, 2, 1, 1, 2, 5}, {3, 2, 1, 1, 2, 6}),  // windows of padding only
      shape_of(1, 1, {1, 1, 1, 1, 0, 1}, {1, 1, 1, 1, 0, 1}, {1, 1, 1, 1, 0, 1}),
  };
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    const PoolScope scope(pool);
    for_each_isa([&] {
      for (const ConvShape& s : shapes) {
        std::vector<float> values = random_floats(s.batch * s.in_channels * volume(s.in), 1);
        for (float& v : values) v = std::round(v * 8);  // many equal values
        check(s, values);
        values[values.size() / 2] = nan;
        values.front() = -inf;
        check(s, values);
      }
    });
  }
}

TEST(MaxPoolPlaces, AddsAtPlaces) {
  const std::vector<float> dy{1, 2, 4, 8, 16, 32};
  float dx[8];
  const std::int64_t own[] = {0, 0, -1, 5, 7, 5};
  EXPECT_EQ(add_at_places_f32(2, 4, 3, dy.data(), own, dx), -1);
  EXPECT_EQ(std::vector<float>(dx, dx + 8), (std::vector<float>{3, 0, 0, 0, 0, 40, 0, 16}));
  const std::int64_t others[] = {7, 0, -1, 0, 7, 5};
  EXPECT_EQ(add_at_places_f32(2, 4, 3, dy.data(), others, dx), -1);
  EXPECT_EQ(std::vector<float>(dx, dx + 8), (std::vector<float>{10, 0, 0, 0, 0, 32, 0, 17}));
  const std::int64_t beyond[] = {7, 0, -1, 0, 8, 5};
  EXPECT_EQ(add_at_places_f32(2, 4, 3, dy.data(), beyond, dx), 8);
  const std::int64_t before[] = {7, 0, -2, 0, 7, 5};
  EXPECT_EQ(add_at_places_f32(2, 4, 3, dy.data(), before, dx), -2);
}

}  // namespace
}  // namespace sdx::cpu
