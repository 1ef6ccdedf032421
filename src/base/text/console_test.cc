#include "base/text/console.h"

#include <gtest/gtest.h>

namespace sdx {
namespace {

TEST(StatusLine, IsDrawnOnTerminalsAlone) {
  std::string shown;
  Console console;
  console.draw = [&](std::string_view text) { shown += text; };
  EXPECT_FALSE(StatusLine(console).due());
  console.terminal = true;
  {
    StatusLine line(console);
    EXPECT_TRUE(line.due());
    line.draw("half");
    EXPECT_EQ(shown, "\r\033[Khalf");
  }
  EXPECT_EQ(shown, "\r\033[Khalf\r\033[K");
}

TEST(StatusLine, FillsABar) {
  EXPECT_EQ(progress_bar(0, 3, 6), "[      ]");
  EXPECT_EQ(progress_bar(1, 3, 6), "[##    ]");
  EXPECT_EQ(progress_bar(4, 3, 6), "[######]");
}

}  // namespace
}  // namespace sdx
