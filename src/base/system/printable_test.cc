#include "base/system/printable.h"

#include <gtest/gtest.h>

namespace sdx {
namespace {

TEST(Printable, EscapesWhatSteersATerminal) {
  EXPECT_EQ(printable("plain\ttext\nZürich ± 5 %, 日本"), "plain\ttext\nZürich ± 5 %, 日本");
  EXPECT_EQ(printable("a\x1b[2Jb"), "a\\u001b[2Jb");
  EXPECT_EQ(printable(std::string_view("\0\r\b\x7f", 4)), "\\u0000\\u000d\\u0008\\u007f");
  EXPECT_EQ(printable("\xC2\x9B"), "\\u009b");   // CSI in one character
  EXPECT_EQ(printable("\xC2\xA0"), "\xC2\xA0");  // a space that does not break
  EXPECT_EQ(printable("\x9B\xFF"), "\\x9b\\xff");
  EXPECT_EQ(printable("\xC3"), "\\xc3");                    // cut off
  EXPECT_EQ(printable("\xE0\x9B\x9B"), "\\xe0\\x9b\\x9b");  // longer than need be
}

TEST(Printable, EscapesLineBreaksAndDirectionsOfUnicode) {
  EXPECT_EQ(printable("a\xC2\x85"
                      "b\u2028c\u2029d"),
            "a\\u0085b\\u2028c\\u2029d");
  EXPECT_EQ(printable("\u202Egpj.exe\u202C \u2066x\u2069 \u200E\u200F\u061C"),
            "\\u202egpj.exe\\u202c \\u2066x\\u2069 \\u200e\\u200f\\u061c");
  // Joiners of letters, other scripts and characters beyond 16 bits stay.
  EXPECT_EQ(printable("\u200C\u200D שלום سلام \U0001F600"), "\u200C\u200D שלום سلام \U0001F600");
}

TEST(Printable, NamesStayInTheirLine) {
  EXPECT_EQ(one_line("x\nerror: fake"), "x\\nerror: fake");
  EXPECT_EQ(one_line("\n\n\x1b\u2028"), "\\n\\n\\u001b\\u2028");
  EXPECT_EQ(one_line("plain\tname"), "plain\tname");
}

}  // namespace
}  // namespace sdx
