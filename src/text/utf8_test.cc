#include "text/utf8.h"

#include <gtest/gtest.h>

namespace sdx::text {
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

}  // namespace
}  // namespace sdx::text
