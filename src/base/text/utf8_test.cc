#include "base/text/utf8.h"

#include <gtest/gtest.h>

namespace sdx {
namespace {

TEST(Utf8, EveryCharacterThereAndBack) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text;
    append_utf8(text, c);
    const CodePoint back = decode_utf8(text, 0);
    ASSERT_EQ(back.value, c);
    ASSERT_EQ(back.bytes, text.size());
    for (std::size_t n = 1; n < text.size(); ++n) {
      ASSERT_EQ(decode_utf8(text.substr(0, n), 0).bytes, 0U);
      ASSERT_EQ(unfinished_utf8(text.substr(0, n)), n);
    }
  }
}

TEST(Utf8, Refuses) {
  for (const std::string bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
                                "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xE2\x28\xA1"}) {
    EXPECT_EQ(decode_utf8(bad, 0).bytes, 0U);
    EXPECT_EQ(valid_utf8("ab" + bad), 2U);
  }
  EXPECT_EQ(unfinished_utf8("ab\xE2\x28"), 0U);
  EXPECT_EQ(unfinished_utf8("ab\xBF"), 0U);
  EXPECT_EQ(unfinished_utf8(""), 0U);
}

TEST(Utf8, CountsAndCutsBetweenCharacters) {
  const std::string text = "a\xC3\xA9\xE6\x97\xA5";
  EXPECT_EQ(count_chars(text), 3U);
  const std::vector<std::size_t> ends{0, 1, 1, 3, 3, 3, 6, 6};
  for (std::size_t most = 0; most < ends.size(); ++most) EXPECT_EQ(end_of_chars(text, most), ends[most]) << most;
}

// Unicode 15, table 3-8 and what stands around it.
TEST(Utf8, ReplacesTheLongestBeginningOfACharacterAtOnce) {
  const std::string r(kReplacementCharacter);
  EXPECT_EQ(repair_utf8("h\xC3\xA9 \xF0\x9F\x98\x80"), "h\xC3\xA9 \xF0\x9F\x98\x80");
  EXPECT_EQ(repair_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(repair_utf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(repair_utf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), r + r + r + r + r + "A" + r + r + "B");
  EXPECT_EQ(repair_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), r + r + r + r + "A");
  EXPECT_EQ(repair_utf8("a\xF0\x9F\x98"), "a" + r);
}

}  // namespace
}  // namespace sdx
