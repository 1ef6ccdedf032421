#include "base/splitmix64.h"

#include <gtest/gtest.h>

namespace sdx {
namespace {

// The authors' C code (https://prng.di.unimi.it/splitmix64.c) gives these.
TEST(SplitMix64, GivesThePublishedNumbers) {
  SplitMix64 random(1234567);
  for (const std::uint64_t expected :
       {6457827717110365317U, 3203168211198807973U, 9817491932198370423U, 4593380528125082431U, 16408922859458223821U}) {
    EXPECT_EQ(random.bits(), expected);
  }
  EXPECT_EQ(SplitMix64::mix(1234567 + 2 * SplitMix64::kStep), 3203168211198807973U);
}

TEST(SplitMix64, DrawsWithinBounds) {
  EXPECT_EQ(SplitMix64::unit(0), 0);
  EXPECT_LT(SplitMix64::unit(UINT64_MAX), 1);
  SplitMix64 random(1);
  double sum = 0, squares = 0;
  for (int i = 0; i < 10000; ++i) {
    EXPECT_LT(random.below(3), 3U);
    const double x = random.normal();
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / 10000, 0, 0.05);
  EXPECT_NEAR(squares / 10000, 1, 0.1);
}

}  // namespace
}  // namespace sdx
