#include "base/text/text_file.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace sdx {
namespace {

std::string utf16(std::u16string_view text, bool big, bool mark) {
  std::string out;
  const auto put = [&](char16_t c) {
    const auto high = static_cast<char>(c >> 8), low = static_cast<char>(c & 0xFF);
    out += big ? high : low;
    out += big ? low : high;
  };
  if (mark) put(0xFEFF);
  for (const char16_t c : text) put(c);
  return out;
}

TEST(TextFile, EveryWayOfSavingItIsTheSameText) {
  const std::string text = "name;zahl\nJ\xC3\xB6rg \xE2\x82\xAC \xF0\x9F\x98\x80;1\n";
  const std::u16string wide = u"name;zahl\nJ\u00F6rg \u20AC \U0001F600;1\n";
  EXPECT_EQ(to_utf8(text), text);
  EXPECT_EQ(to_utf8("\xEF\xBB\xBF" + text), text);
  for (const bool big : {false, true}) {
    for (const bool mark : {false, true}) EXPECT_EQ(to_utf8(utf16(wide, big, mark)), text) << big << mark;
  }
}

TEST(TextFile, DamagedTextIsNeverReadBeyondItsEnd) {
  EXPECT_EQ(to_utf8(""), "");
  EXPECT_EQ(to_utf8("\xFF\xFE"), "");
  EXPECT_THROW(to_utf8("\xFF\xFE"
                       "a"),
               Error);
  EXPECT_EQ(to_utf8(utf16(std::u16string(1, 0xD83D), true, true)), "\xEF\xBF\xBD");  // half of a pair
  EXPECT_EQ(to_utf8(utf16(std::u16string{0xDE00, u'a'}, true, true)),
            "\xEF\xBF\xBD"
            "a");
  EXPECT_EQ(to_utf8("a"), "a");
}

TEST(TextFile, TheLineThatNamesTheSeparatorIsTakenOff) {
  std::string_view text = "sep=;\r\na;b\n";
  EXPECT_EQ(take_separator_line(text), ';');
  EXPECT_EQ(text, "\r\na;b\n");
  text = "\"sep=\t\"\na\tb";
  EXPECT_EQ(take_separator_line(text), '\t');
  text = "sep=";
  EXPECT_EQ(take_separator_line(text), std::nullopt);
  text = "separator;b\n";
  EXPECT_EQ(take_separator_line(text), std::nullopt);
  EXPECT_EQ(text, "separator;b\n");
}

}  // namespace
}  // namespace sdx
