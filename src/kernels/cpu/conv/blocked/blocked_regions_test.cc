#include "kernels/cpu/conv/blocked/blocked_regions.h"

#include <gtest/gtest.h>

#include "kernels/cpu/conv/blocked/blocked_conv.h"
#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

// `taps` of a row and of a column, around images of the same size as the results.
ConvShape square(std::int64_t extent, std::int64_t taps, std::int64_t dilation) {
  ConvShape s;
  s.in_channels = 96, s.out_channels = 32;
  for (int i = 1; i < 3; ++i) {
    s.in[i] = s.out[i] = extent;
    s.kernel[i] = taps;
    s.dilation[i] = dilation;
    s.pad[i] = taps / 2 * dilation;
  }
  return s;
}

TEST(BlockedRegions, TapsInThePaddingAreLeftOut) {
  test::for_each_isa([] {
    const std::vector<Region> one = regions_worth_it(square(20, 3, 24));
    ASSERT_EQ(one.size(), 1U);
    EXPECT_EQ(one[0].taps(), 1);
    EXPECT_EQ(one[0].rows.size() * one[0].columns.size(), 400);
    EXPECT_EQ(one[0].row_taps.begin, 1);
    const std::vector<Region> nine = regions_worth_it(square(20, 3, 12));
    ASSERT_EQ(nine.size(), 9U);
    std::int64_t outputs = 0, products = 0;
    for (const Region& r : nine) {
      outputs += r.rows.size() * r.columns.size();
      products += r.taps() * r.rows.size() * r.columns.size();
    }
    EXPECT_EQ(outputs, 400);
    EXPECT_EQ(products, 36 * 36);  // of 60 * 60
  });
}

TEST(BlockedRegions, NotForAFewTaps) {
  test::for_each_isa([] {
    EXPECT_TRUE(regions_worth_it(square(56, 3, 1)).empty());
    EXPECT_TRUE(regions_worth_it(square(28, 3, 2)).empty());
    EXPECT_TRUE(regions_worth_it(square(2, 3, 1)).empty());  // tiles of one pixel
  });
}

// Winograd's tiles take a quarter of all products, but more than those of one tap of nine.
TEST(BlockedRegions, DecideBetweenAlgorithms) {
  test::for_each_isa([] {
    EXPECT_EQ(conv_blocked_choose(square(20, 3, 24)), BlockedConv::direct);
    EXPECT_NE(conv_blocked_choose(square(20, 3, 2)), BlockedConv::direct);
  });
}

}  // namespace
}  // namespace sdx::cpu
