#include "serve/server/keys.h"

#include <gtest/gtest.h>

#include <sdx/error.hpp>

namespace sdx::serve {
namespace {

using std::chrono::seconds;
using Verdict = Keys::Verdict;

const Keys::Now kStart = Keys::Now() + seconds(1000);
const auto kDay = std::chrono::sys_days(std::chrono::year(2026) / 6 / 1);

Verdict ask(Keys& keys, std::string_view key, Keys::Now now = kStart) { return keys.ask(key, true, now, kDay).verdict; }

TEST(Keys, ReadsAFile) {
  const auto rules = parse_keys(
      "# who may ask\n\n"
      "sk-alice  name=alice\trate=60 concurrency=4 expires=2027-01-31 # comment\r\n"
      "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 name=bob\n"
      "sk-third",
      "keys.txt");
  ASSERT_EQ(rules.size(), 3u);
  EXPECT_EQ(rules[0].name, "alice");
  EXPECT_EQ(rules[0].per_minute, 60);
  EXPECT_EQ(rules[0].concurrency, 4);
  EXPECT_EQ(*rules[0].expires, std::chrono::sys_days(std::chrono::year(2027) / 1 / 31));
  EXPECT_EQ(rules[2].name, "key 5");
  Keys keys(rules);
  EXPECT_EQ(ask(keys, "sk-alice"), Verdict::fine);
  EXPECT_EQ(ask(keys, "test"), Verdict::fine);  // whose hash it is
  EXPECT_EQ(ask(keys, "sk-third"), Verdict::fine);
  EXPECT_EQ(ask(keys, "sk-thir"), Verdict::unknown);
  EXPECT_EQ(ask(keys, ""), Verdict::missing);
  EXPECT_EQ(keys.ask("test", true, kStart, kDay).name, "bob");
}

TEST(Keys, SaysWhatIsWrongWithoutTheKey) {
  for (const char* text :
       {"", "# nothing\n", "secret rate=0", "secret rate=x", "secret concurrency=-1", "secret expires=2027-02-30",
        "secret expires=tomorrow", "secret unknown=1", "secret name", "secret name=", "secret\nsecret", "sha256:secret",
        "sha256:zz86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "secr\xc3\xa9t"}) {
    try {
      parse_keys(text, "keys.txt");
      ADD_FAILURE() << text;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::invalid_argument);
      EXPECT_NE(std::string(e.what()).find("keys.txt"), std::string::npos);
      EXPECT_EQ(std::string(e.what()).find("secr"), std::string::npos) << e.what();
    }
  }
  EXPECT_THROW(read_keys("no such file"), Error);
}

TEST(Keys, Expire) {
  Keys keys(parse_keys("a expires=2026-06-01\nb expires=2026-06-02", "k"));
  EXPECT_EQ(ask(keys, "a"), Verdict::expired);
  EXPECT_EQ(ask(keys, "b"), Verdict::fine);
}

TEST(Keys, HaveARate) {
  Keys keys(parse_keys("a rate=3\nb", "k"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ask(keys, "a"), Verdict::fine);
  const Keys::Answer refused = keys.ask("a", true, kStart, kDay);
  EXPECT_EQ(refused.verdict, Verdict::too_often);
  EXPECT_EQ(refused.retry_after, seconds(20));
  EXPECT_EQ(keys.ask("a", false, kStart, kDay).verdict, Verdict::fine);  // what does not count
  EXPECT_EQ(ask(keys, "a", kStart + seconds(19)), Verdict::too_often);
  EXPECT_EQ(ask(keys, "a", kStart + seconds(20)), Verdict::fine);
  EXPECT_EQ(ask(keys, "a", kStart + seconds(21)), Verdict::too_often);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(ask(keys, "b"), Verdict::fine);
}

TEST(Keys, HaveSoManyAtATime) {
  Keys keys(parse_keys("a concurrency=2", "k"));
  auto first = keys.ask("a", true, kStart, kDay);
  auto second = keys.ask("a", true, kStart, kDay);
  EXPECT_EQ(second.verdict, Verdict::fine);
  EXPECT_EQ(ask(keys, "a"), Verdict::too_many);
  first.held.reset();
  EXPECT_EQ(ask(keys, "a"), Verdict::fine);
}

TEST(Keys, StayUsedUpWhenTheyAreReadAgain) {
  Keys keys(parse_keys("a rate=1\nb\nc concurrency=1", "k"));
  EXPECT_EQ(ask(keys, "a"), Verdict::fine);
  auto held = keys.ask("c", true, kStart, kDay);
  keys.replace(parse_keys("d\nc concurrency=1\na rate=1", "k"));
  EXPECT_EQ(ask(keys, "a"), Verdict::too_often);
  EXPECT_EQ(ask(keys, "b"), Verdict::unknown);
  EXPECT_EQ(ask(keys, "c"), Verdict::too_many);
  EXPECT_EQ(ask(keys, "d"), Verdict::fine);
  held.held.reset();
  EXPECT_EQ(ask(keys, "c"), Verdict::fine);
}

}  // namespace
}  // namespace sdx::serve
