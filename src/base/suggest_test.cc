#include "base/suggest.h"

#include <gtest/gtest.h>

namespace sdx {
namespace {

TEST(Suggest, FindsTypingErrors) {
  const std::vector<std::string> names{"cpu", "cuda", "coreml"};
  EXPECT_EQ(closest("cdua", names), "cuda");  // a swap counts once
  EXPECT_EQ(closest("CUDAA", names), "cuda");
  EXPECT_EQ(closest("corelm", names), "coreml");
  EXPECT_EQ(closest("something", names), "");
  EXPECT_EQ(closest("Foo", std::vector<std::string>{"Cos", "Floor"}), "");  // two of three letters are another word
  EXPECT_EQ(closest("rnu", std::vector<std::string>{"run"}), "run");
  EXPECT_EQ(closest("", names), "");
}

}  // namespace
}  // namespace sdx
