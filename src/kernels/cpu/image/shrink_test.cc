#include "kernels/cpu/image/shrink.h"

#include <gtest/gtest.h>

#include <random>

#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using test::for_each_isa;
using test::Guarded;

double area_mean(const std::uint8_t* from, const ShrinkShape& s, std::int64_t x, std::int64_t y, std::int64_t c) {
  const double across = static_cast<double>(s.width) / static_cast<double>(s.new_width);
  const double down = static_cast<double>(s.height) / static_cast<double>(s.new_height);
  double sum = 0;
  for (std::int64_t v = 0; v < s.height; ++v) {
    const double rows = std::min<double>(static_cast<double>(v) + 1, static_cast<double>(y + 1) * down) -
                        std::max<double>(static_cast<double>(v), static_cast<double>(y) * down);
    if (rows <= 0) continue;
    for (std::int64_t u = 0; u < s.width; ++u) {
      const double columns = std::min<double>(static_cast<double>(u) + 1, static_cast<double>(x + 1) * across) -
                             std::max<double>(static_cast<double>(u), static_cast<double>(x) * across);
      if (columns > 0) sum += rows * columns * from[(v * s.width + u) * s.channels + c];
    }
  }
  return sum / (across * down);
}

TEST(KernelsShrink, IsTheMeanOfTheArea) {
  const std::vector<ShrinkShape> cases = {{97, 41, 31, 17, 3}, {64, 64, 64, 64, 3}, {64, 64, 32, 16, 4}, {50, 3, 7, 1, 1},
                                          {1, 50, 1, 49, 3},   {200, 2, 1, 2, 3},   {33, 7, 32, 6, 1},   {130, 9, 129, 9, 4}};
  for_each_isa([&] {
    for (const ShrinkShape& s : cases) {
      std::mt19937 rng(3);
      Guarded<std::uint8_t> from(s.width * s.height * s.channels), to(s.new_width * s.new_height * s.channels);
      for (std::int64_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint8_t>(rng());
      shrink_u8(s, from.data(), to.data());
      for (std::int64_t i = 0; i < to.size(); ++i) {
        const std::int64_t c = i % s.channels, x = i / s.channels % s.new_width, y = i / s.channels / s.new_width;
        ASSERT_NEAR(to[i], area_mean(from.data(), s, x, y, c), 0.501) << s.width << "x" << s.height << " at " << x << "," << y;
      }
    }
  });
}

TEST(KernelsShrink, SplitsChannels) {
  for_each_isa([&] {
    for (const std::int64_t n : {1, 15, 16, 67}) {
      Guarded<std::uint8_t> pixels(3 * n);
      Guarded<float> a(n), b(n), c(n);
      for (std::int64_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 37);
      split3_u8(pixels.data(), n, {1, 2, 3}, 0.5F, {a.data(), b.data(), c.data()});
      for (std::int64_t i = 0; i < n; ++i) {
        EXPECT_EQ(a[i], (static_cast<float>(pixels[3 * i]) - 1) * 0.5F);
        EXPECT_EQ(b[i], (static_cast<float>(pixels[3 * i + 1]) - 2) * 0.5F);
        EXPECT_EQ(c[i], (static_cast<float>(pixels[3 * i + 2]) - 3) * 0.5F);
      }
    }
  });
}

}  // namespace
}  // namespace sdx::cpu
