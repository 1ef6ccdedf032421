#include "quantize/calibration/histogram.h"

#include <gtest/gtest.h>

#include <random>

namespace sdx::quantize {
namespace {

constexpr double kCodes = 255;

std::vector<float> normal(std::size_t count, float deviation) {
  std::vector<float> out(count);
  std::mt19937 random(3);
  std::normal_distribution<float> values(0, deviation);
  for (float& v : out) v = values(random);
  return out;
}

Histogram counted(const std::vector<float>& values, int bins = 2048) {
  Extremes e;
  e.add(values, std::nullopt);
  Histogram h(e.range(), bins);
  h.add(values);
  return h;
}

// The values after rounding to 256 codes over the range.
double error(const std::vector<float>& values, Range r) {
  const double step = (r.high - r.low) / kCodes;
  double sum = 0;
  for (const float v : values) {
    const double x = std::clamp(static_cast<double>(v), r.low, r.high);
    const double rounded = r.low + std::nearbyint((x - r.low) / step) * step;
    sum += (rounded - static_cast<double>(v)) * (rounded - static_cast<double>(v));
  }
  return sum;
}

TEST(Histogram, EntropyKeepsRareLargeValuesThatMatter) {
  std::vector<float> values = normal(20000, 0.5F);
  values[100] = 30;  // one of 20,000, a quarter of all squares
  values[200] = -28;
  const Histogram h = counted(values);
  const Range found = entropy_range(h, 128, kCodes, false);
  EXPECT_LE(error(values, found), error(values, h.range()) * 1.05);
  EXPECT_GT(found.high, 25);
}

TEST(Histogram, EntropyCutsOffWhatHardlyCounts) {
  std::vector<float> values(100000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = -1 + 2 * static_cast<float>(i) / 100000;
  Histogram h({-1, 3}, 2048);
  for (int i = 0; i < 100; ++i) h.add(values);
  h.add(std::vector<float>{3});
  const Range found = entropy_range(h, 128, kCodes, false);
  EXPECT_LE(error(values, found), error(values, h.range()) * 0.7);
  EXPECT_LT(found.high, 2);
}

TEST(Histogram, EntropyKeepsTheRangeWhereCuttingGainsLittle) {
  const std::vector<float> values = normal(200000, 1);
  const Histogram h = counted(values);
  const Range found = entropy_range(h, 128, kCodes, false);
  EXPECT_EQ(found.low, h.range().low);
  EXPECT_EQ(found.high, h.range().high);
}

TEST(Histogram, LeastSquaresIsNoWorseThanTheWholeRange) {
  for (const float outlier : {3.0F, 10.0F, 100.0F}) {
    std::vector<float> values = normal(5000, 1);
    values[7] = outlier;
    const Histogram h = counted(values);
    EXPECT_LE(error(values, mse_range(h, kCodes, false)), error(values, h.range()) * 1.02) << outlier;
  }
}

TEST(Histogram, PercentileCutsAShare) {
  std::vector<float> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
  const Range r = percentile_range(counted(values), 99);
  EXPECT_NEAR(r.high, 990, 2);
  EXPECT_EQ(r.low, 0);
}

TEST(Histogram, NothingButZerosHasNoRange) {
  const Histogram h = counted(std::vector<float>(10, 0.0F));
  for (const Range r : {percentile_range(h, 99), entropy_range(h, 128, kCodes, false), mse_range(h, kCodes, true)}) {
    EXPECT_EQ(r.low, 0);
    EXPECT_EQ(r.high, 0);
  }
}

}  // namespace
}  // namespace sdx::quantize
