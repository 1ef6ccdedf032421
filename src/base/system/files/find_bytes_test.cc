#include "base/system/files/find_bytes.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace sdx {
namespace {

TEST(FindBytes, FindsTheFirstPlace) {
  EXPECT_EQ(find_bytes("abcabd", "abd"), 3U);
  EXPECT_EQ(find_bytes("aaab", "aab"), 1U);
  EXPECT_EQ(find_bytes("abababac", "ababac"), 2U);
  EXPECT_EQ(find_bytes("abc", "abc"), 0U);
  EXPECT_EQ(find_bytes("xyz", "z"), 2U);
  EXPECT_EQ(find_bytes(std::string_view("a\0b\0c", 5), std::string_view("\0c", 2)), 3U);
  for (const char* part : {"d", "abd", "abca", "bcc"}) EXPECT_EQ(find_bytes("abc", part), std::string_view::npos) << part;
  EXPECT_EQ(find_bytes("", "a"), std::string_view::npos);
}

TEST(FindBytes, AgreesWithThePlainSearch) {
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    std::string text(random() % 30, ' '), part(1 + random() % 5, ' ');
    for (std::string* s : {&text, &part}) {
      for (char& c : *s) c = "ab"[random() % 2];
    }
    ASSERT_EQ(find_bytes(text, part), text.find(part)) << text << " " << part;
  }
}

// The product of both lengths would take minutes.
TEST(FindBytes, HostileTextsTakeNoLonger) {
  const std::string text(4 << 20, 'a'), part = std::string(1 << 20, 'a') + "b";
  EXPECT_EQ(find_bytes(text, part), std::string_view::npos);
}

}  // namespace
}  // namespace sdx
