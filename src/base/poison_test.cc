#include "base/poison.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>

namespace sdx {
namespace {

TEST(Poison, FillsWholeAndPartWords) {
  std::array<unsigned char, 11> bytes{};
  poison(bytes.data(), 9);
  EXPECT_EQ(bytes, (std::array<unsigned char, 11>{0xA5, 0xA5, 0xA5, 0x7F, 0xA5, 0xA5, 0xA5, 0x7F, 0xA5, 0, 0}));
  poison(bytes.data(), 3, 0x7DA5, 2);
  EXPECT_EQ(bytes[0], 0xA5);
  EXPECT_EQ(bytes[1], 0x7D);
  EXPECT_EQ(bytes[2], 0xA5);
  poison(bytes.data(), 0);
}

TEST(Poison, IsASignallingNan) {
  std::array<std::uint32_t, 1> word{};
  poison(word.data(), sizeof word);
  EXPECT_TRUE(std::isnan(std::bit_cast<float>(word[0])));
  EXPECT_EQ(word[0] & 0x00400000U, 0U);  // quiet where set
}

}  // namespace
}  // namespace sdx
