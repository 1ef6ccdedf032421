#include "kernels/cpu/image/grid_sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using test::Guarded;

double position(float g, std::int64_t extent, const GridSample& s) {
  const auto n = static_cast<double>(extent), x = static_cast<double>(g);
  const double v = s.align_corners ? (x + 1) / 2 * (n - 1) : ((x + 1) * n - 1) / 2;
  return std::isfinite(v) ? (s.border ? std::clamp(v, 0.0, n - 1) : std::clamp(v, -4.0, n + 4)) : (s.border ? 0 : -2);
}

double plain(const GridSample& s, const float* plane, float gx, float gy) {
  const double x = position(gx, s.width, s), y = position(gy, s.height, s);
  double sum = 0;
  for (std::int64_t i = 0; i < s.height; ++i) {
    for (std::int64_t j = 0; j < s.width; ++j) {
      const double dy = std::fabs(static_cast<double>(i) - y), dx = std::fabs(static_cast<double>(j) - x);
      if (dy < 1 && dx < 1) sum += (1 - dy) * (1 - dx) * static_cast<double>(plane[i * s.width + j]);
    }
  }
  return sum;
}

void check(const GridSample& s) {
  const std::int64_t plane = s.height * s.width;
  Guarded<float> x(s.batch * s.channels * plane, 1, test::random_floats(s.batch * s.channels * plane, 1));
  std::vector<float> places = test::random_floats(2 * s.batch * s.positions, 2, -1.2F, 1.2F);
  constexpr float kOdd[] = {-1, 1, 0, 5, -5, 1e30F, -1e30F, std::numeric_limits<float>::infinity()};
  for (std::size_t i = 0; i < places.size(); i += 11) places[i] = kOdd[i / 11 % std::size(kOdd)];
  if (places.size() > 20) places[20] = std::numeric_limits<float>::quiet_NaN();
  Guarded<float> grid(2 * s.batch * s.positions, 1, places), y(s.batch * s.channels * s.positions, 3);
  grid_sample_f32(s, x.data(), grid.data(), y.data());
  for (std::int64_t n = 0; n < s.batch; ++n) {
    for (std::int64_t c = 0; c < s.channels; ++c) {
      for (std::int64_t p = 0; p < s.positions; ++p) {
        const float* at = grid.data() + 2 * (n * s.positions + p);
        const double wanted = plain(s, x.data() + (n * s.channels + c) * plane, at[0], at[1]);
        ASSERT_NEAR(y[(n * s.channels + c) * s.positions + p], wanted, 1e-6) << p << ": " << at[0] << ", " << at[1];
      }
    }
  }
}

TEST(GridSample, WeighsFourNeighbours) {
  test::for_each_isa([] {
    for (const std::int64_t positions : {1, 3, 8, 21, 256, 700}) {
      for (int variant = 0; variant < 4; ++variant) {
        check({2, 3, 5, 9, positions, (variant & 1) != 0, (variant & 2) != 0});
        check({1, 1, 2, 2, positions, (variant & 1) != 0, (variant & 2) != 0});
      }
    }
  });
}

TEST(GridSample, WhatLiesOutsideContributesNothing) {
  test::for_each_isa([] {
    // Positions half a pixel beyond the corners; the elements that weigh nothing are not finite.
    const float bad = std::numeric_limits<float>::infinity();
    const std::vector<float> x{4, bad, bad, bad, bad, bad, bad, bad, 8};
    const std::vector<float> grid{-1, -1, 1, 1};
    std::vector<float> y(2);
    grid_sample_f32({1, 1, 3, 3, 2, false, false}, x.data(), grid.data(), y.data());
    EXPECT_EQ(y, (std::vector<float>{1, 2}));
    grid_sample_f32({1, 1, 3, 3, 2, true, true}, x.data(), grid.data(), y.data());
    EXPECT_EQ(y[1], 8);
  });
}

}  // namespace
}  // namespace sdx::cpu
