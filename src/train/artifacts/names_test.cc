#include "train/artifacts/names.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace sdx::train {
namespace {

TEST(Names, Globs) {
  struct Case {
    const char *pattern, *name;
    bool met;
  };
  const Case cases[] = {
      {"*", "", true},          {"*", "fc.weight", true}, {"fc.*", "fc.weight", true}, {"fc.*", "fc2.weight", false},
      {"fc?.*", "fc2.b", true}, {"?", "", false},         {"*.b*s", "a.b.bias", true}, {"*a*b*", "xxbxxa", false},
      {"a[0]", "a[0]", true},   {"a[0]", "a0", false},    {"**x", "yx", true},         {"x", "xx", false}};
  for (const Case& c : cases) EXPECT_EQ(glob_matches(c.pattern, c.name), c.met) << c.pattern << " " << c.name;
  EXPECT_FALSE(glob_matches(std::string(64, '*') + "b", std::string(100'000, 'a')));
}

std::string refusal(const std::vector<std::string>& patterns, const std::vector<std::string>& names) {
  try {
    matched(patterns, names, "frozen");
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::invalid_argument);
    return e.what();
  }
  return "";
}

TEST(Names, EveryPatternMeetsSomething) {
  const std::vector<std::string> names{"conv.weight", "conv.bias", "odd*name", "oddly.name"};
  EXPECT_EQ(matched(std::vector<std::string>{"*bias", "odd*name"}, names, "frozen"),
            (std::vector<bool>{false, true, true, false}));
  EXPECT_NE(refusal({"conv.wieght"}, names).find("frozen: there is no 'conv.wieght'; did you mean 'conv.weight'?"),
            std::string::npos);
  EXPECT_NE(refusal({"fc*"}, names).find("'fc*' matches no name; the first of 4 is 'conv.weight'"), std::string::npos);
  EXPECT_NE(refusal({"fc*"}, {}).find("there are none"), std::string::npos);
}

}  // namespace
}  // namespace sdx::train
