#include "base/text/json_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace sdx {
namespace {

TEST(JsonText, EscapesWhatJsonDemandsAndWhatTerminalsObey) {
  EXPECT_EQ(json_string(""), "\"\"");
  EXPECT_EQ(json_string("a/b \"c\" \\ é\U0001F600"), "\"a/b \\\"c\\\" \\\\ é\U0001F600\"");
  EXPECT_EQ(json_string(std::string_view("\0\n\t\r\x1b\x7f", 6)), "\"\\u0000\\n\\t\\u000d\\u001b\\u007f\"");
  std::string codes;
  append_json_string(codes, "a\n\t\"", JsonControls::codes);
  EXPECT_EQ(codes, "\"a\\u000a\\u0009\\\"\"");
}

TEST(JsonText, IsReadBackAsTheSameText) {
  std::string all;
  for (int c = 0; c < 0x80; ++c) all += static_cast<char>(c);
  all += "é日\U0001F600";
  EXPECT_EQ(nlohmann::json::parse(json_string(all)).get<std::string>(), all);
}

// As JSON libraries and browsers do it: one U+FFFD for the beginning of a character.
TEST(JsonText, WhatIsNotUtf8IsReplaced) {
  for (const std::string bad : {"a\xFFz", "a\xE6\x97z", "\xF0\x9F\x98", "\xED\xA0\x80", "\xC3\xC3\xA9"}) {
    EXPECT_EQ(json_string(bad), nlohmann::json(bad).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  EXPECT_EQ(json_string("a\xE6\x97z"), "\"a\uFFFDz\"");
}

TEST(JsonText, ListsAndNumbers) {
  EXPECT_EQ(json_list({}), "[]");
  EXPECT_EQ(json_list({"a", "\""}), "[\"a\",\"\\\"\"]");
  EXPECT_EQ(json_or_null(""), "null");
  EXPECT_EQ(json_number(0.1F), "0.1");
  EXPECT_EQ(json_number(0.1), "0.1");
  EXPECT_EQ(json_number(2.0 / 3, 3), "0.667");
  EXPECT_EQ(json_number(std::nan("")), "null");
  EXPECT_EQ(json_number(HUGE_VALF), "null");
}

TEST(JsonText, PiecesMayEndWithinACharacter) {
  EXPECT_EQ(json_piece("\"\xE6\x97") + json_piece("\xA5\n"), "\\\"\xE6\x97\xA5\\n");
}

}  // namespace
}  // namespace sdx
