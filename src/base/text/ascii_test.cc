#include "base/text/ascii.h"

#include <gtest/gtest.h>

namespace sdx {
namespace {

TEST(Ascii, ChangesLettersAlone) {
  EXPECT_EQ(ascii_lower("AZaz09_[\xC3\x84"), "azaz09_[\xC3\x84");
  EXPECT_TRUE(same_word("CUDA", "cuda"));
  EXPECT_FALSE(same_word("CUDA", "cuda1"));
  EXPECT_FALSE(same_word("@", "`"));
}

TEST(Ascii, WhiteSpaceAtTheEndsGoes) {
  EXPECT_EQ(trimmed_text(" \ta b\r\n"), "a b");
  EXPECT_EQ(trimmed_text(" "), "");
  EXPECT_EQ(trimmed_text(""), "");
  EXPECT_EQ(trimmed_text("a"), "a");
  EXPECT_EQ(trimmed_text("-a--", "-"), "a");
}

}  // namespace
}  // namespace sdx
