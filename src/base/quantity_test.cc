#include "base/quantity.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/words.h"
#include "support/errors.h"

namespace sdx {
namespace {

TEST(Quantity, Sizes) {
  EXPECT_EQ(size_from_text("1000000"), 1000000U);
  EXPECT_EQ(size_from_text("512MB"), 512000000U);
  EXPECT_EQ(size_from_text("1.5 kb"), 1500U);
  EXPECT_EQ(size_from_text("2GiB"), std::uint64_t{2} << 30);
  EXPECT_EQ(size_from_text("2g"), std::uint64_t{2} << 30);
  EXPECT_EQ(size_from_text("1T"), std::uint64_t{1} << 40);
  for (const char* wrong : {"", "x", "-1", "12XB", "1e18", "nan", "inf", "1 2"}) EXPECT_FALSE(size_from_text(wrong)) << wrong;
}

TEST(Quantity, Times) {
  EXPECT_EQ(time_from_text("30")->count(), 30'000);
  EXPECT_EQ(time_from_text("2.5s")->count(), 2500);
  EXPECT_EQ(time_from_text("500 ms")->count(), 500);
  EXPECT_EQ(time_from_text("2m")->count(), 120'000);
  EXPECT_EQ(time_from_text("2min")->count(), 120'000);
  EXPECT_EQ(time_from_text("0")->count(), 0);
  for (const char* wrong : {"", "soon", "-1", "1h", "1e10s", "nan"}) EXPECT_FALSE(time_from_text(wrong)) << wrong;
}

TEST(Words, AreFoundAndSuggested) {
  constexpr std::array<std::string_view, 3> kWords{"auto", "native", "ort"};
  EXPECT_EQ(find_word(kWords, "ORT"), 2U);
  EXPECT_EQ(testing::error_of(ErrorCode::invalid_argument, [&] { find_word(kWords, "nativ"); }),
            "expected one of auto, native, ort, found 'nativ'; did you mean 'native'?");
}

TEST(Quantity, MeasuredTimesHaveFractions) {
  EXPECT_EQ(time_text(0.45), "450 ms");
  EXPECT_EQ(time_text(2.14), "2.1 s");
  EXPECT_EQ(time_text(200.9), "3 min 20 s");
  EXPECT_EQ(time_text(7500), "2 h 5 min");
}

TEST(Quantity, SizesHaveOneDigit) {
  EXPECT_EQ(size_text(0), "0 B");
  EXPECT_EQ(size_text(999), "999 B");
  EXPECT_EQ(size_text(1234), "1.2 KB");
  EXPECT_EQ(size_text(4.56e6), "4.6 MB");
  EXPECT_EQ(size_text(2e16), "20000.0 TB");
}

}  // namespace
}  // namespace sdx
