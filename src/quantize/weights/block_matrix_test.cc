#include "quantize/weights/block_matrix.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

namespace sdx::quantize {
namespace {

std::vector<float> bell(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.05F);
  std::vector<float> out(count);
  for (float& v : out) v = normal(random);
  return out;
}

TEST(BlockMatrix, NearestStaysWithinAStep) {
  const std::vector<float> w = bell(7 * 70, 1);
  for (const int bits : {2, 4, 8}) {
    for (const bool symmetric : {false, true}) {
      const BlockFormat format{bits, 16, symmetric, DataType::float32};
      const BlockMatrix m = quantize_blocks(w, 7, 70, format, Rounding::nearest);
      ASSERT_EQ(m.blocks, 5);
      for (std::int64_t r = 0; r < 7; ++r) {
        for (std::int64_t c = 0; c < 70; ++c) {
          const float step = std::fabs(m.scales[static_cast<std::size_t>(r * 5 + c / 16)]);
          // Half a step, and another half where the zero point is rounded; a symmetric range may lack the code for its end.
          EXPECT_LE(std::fabs(m.at(r, c) - w[static_cast<std::size_t>(r * 70 + c)]), 1.01F * step)
              << bits << ' ' << r << ' ' << c;
        }
      }
    }
  }
}

TEST(BlockMatrix, BetterMethodsErrLess) {
  const std::vector<float> w = bell(64 * 256, 2);
  for (const int bits : {2, 4}) {
    const BlockFormat format{bits, 64, false, DataType::float32};
    const double nearest = relative_error(w, quantize_blocks(w, 64, 256, format, Rounding::nearest));
    const double search = relative_error(w, quantize_blocks(w, 64, 256, format, Rounding::search));
    const double hqq = relative_error(w, quantize_blocks(w, 64, 256, format, Rounding::hqq));
    EXPECT_LT(search, nearest) << bits;
    EXPECT_LT(hqq, nearest) << bits;
  }
}

TEST(BlockMatrix, ImportanceDecides) {
  std::vector<float> w = bell(64, 3);
  w[5] = 1;  // an outlier
  std::vector<float> importance(64, 1.0F);
  importance[5] = 0;
  const BlockFormat format{4, 64, true, DataType::float32};
  const BlockMatrix with = quantize_blocks(w, 1, 64, format, Rounding::search, importance);
  const BlockMatrix without = quantize_blocks(w, 1, 64, format, Rounding::nearest);
  double a = 0, b = 0;
  for (std::int64_t c = 0; c < 64; ++c) {
    if (c == 5) continue;
    a += std::pow(with.at(0, c) - w[static_cast<std::size_t>(c)], 2);
    b += std::pow(without.at(0, c) - w[static_cast<std::size_t>(c)], 2);
  }
  EXPECT_LT(a, b / 2);
}

TEST(BlockMatrix, ZerosAndEndsAreExact) {
  const std::vector<float> zeros(32, 0.0F);
  for (const Rounding rounding : {Rounding::nearest, Rounding::search, Rounding::hqq}) {
    const BlockMatrix m = quantize_blocks(zeros, 1, 32, BlockFormat{4, 32, false, DataType::float32}, rounding);
    for (std::int64_t c = 0; c < 32; ++c) EXPECT_EQ(m.at(0, c), 0.0F);
  }
  std::vector<float> ends(16, 0.0F);
  ends[3] = 8;
  ends[4] = -7;
  const BlockMatrix m = quantize_blocks(ends, 1, 16, BlockFormat{4, 16, true, DataType::float32}, Rounding::nearest);
  EXPECT_EQ(m.at(0, 3), 8.0F);
  EXPECT_EQ(m.at(0, 4), -7.0F);
}

TEST(BlockMatrix, ScalesFitTheirType) {
  const std::vector<float> w = bell(256, 4);
  const BlockMatrix m = quantize_blocks(w, 8, 32, BlockFormat{4, 32, false, DataType::bfloat16}, Rounding::search);
  for (const float s : m.scales) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(s) & 0xFFFFU, 0U);  // the lower half, which bfloat16 lacks
  }
}

TEST(BlockMatrix, PacksLowBitsFirst) {
  const std::vector<std::uint8_t> codes{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(packed_rows(codes, 2, 3, 4), (std::vector<std::uint8_t>{0x21, 0x03, 0x54, 0x06}));
  EXPECT_EQ(packed_rows(std::vector<std::uint8_t>{1, 2, 3, 0, 3}, 1, 5, 2), (std::vector<std::uint8_t>{0x39, 0x03}));
}

}  // namespace
}  // namespace sdx::quantize
