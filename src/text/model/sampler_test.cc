#include "text/model/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "base/error.h"
#include "support/errors.h"
#include "text/model/answer_text.h"

namespace sdx::text {
namespace {

using Ids = std::vector<TokenId>;

// The frequency of each token in `count` draws from these shares.
std::map<TokenId, int> draws(const SamplingSettings& s, const std::vector<float>& shares, int count) {
  Sampler sampler(s, {}, 0);
  std::map<TokenId, int> out;
  for (int i = 0; i < count; ++i) {
    std::vector<float> logits;
    for (const float p : shares) logits.push_back(std::log(p) + 3.0F);
    ++out[sampler.choose(logits, {})];
  }
  return out;
}

SamplingSettings seeded(std::uint64_t seed = 1) {
  SamplingSettings s;
  s.seed = seed;
  return s;
}

Ids kept(const SamplingSettings& s, const std::vector<float>& shares) {
  Ids ids;
  for (const auto& [id, count] : draws(s, shares, 4000)) ids.push_back(id);
  return ids;
}

const std::vector<float> kShares{0.05F, 0.4F, 0.1F, 0.25F, 0.2F};

TEST(Sampler, DrawsBySharesAndTemperature) {
  const auto plain = draws(seeded(), kShares, 20000);
  for (TokenId i = 0; i < 5; ++i) {
    // Six standard deviations at most.
    EXPECT_NEAR(plain.at(i) / 20000.0, static_cast<double>(kShares[i]), 6 * std::sqrt(0.25 / 20000.0));
  }
  SamplingSettings cold = seeded();
  cold.temperature = 0.5F;  // shares squared
  const auto sharp = draws(cold, kShares, 20000);
  double total = 0;
  for (const float p : kShares) total += static_cast<double>(p) * static_cast<double>(p);
  EXPECT_NEAR(sharp.at(1) / 20000.0, 0.16 / total, 6 * std::sqrt(0.25 / 20000.0));
  cold.temperature = 0.0F;
  EXPECT_EQ(kept(cold, kShares), (Ids{1}));
  SamplingSettings greedy = seeded();
  greedy.greedy = true;
  EXPECT_EQ(kept(greedy, kShares), (Ids{1}));
}

TEST(Sampler, KeepsWhatTheSettingsSay) {
  SamplingSettings s = seeded();
  s.top_k = 2;
  EXPECT_EQ(kept(s, kShares), (Ids{1, 3}));
  s = seeded();
  s.top_p = 0.6F;  // 0.4, then 0.25 reaches it
  EXPECT_EQ(kept(s, kShares), (Ids{1, 3}));
  s.top_p = 0.66F;
  EXPECT_EQ(kept(s, kShares), (Ids{1, 3, 4}));
  s = seeded();
  s.min_p = 0.45F;  // of 0.4: 0.18
  EXPECT_EQ(kept(s, kShares), (Ids{1, 3, 4}));
  s = seeded();
  // The entropy is 1.4150 nats; informations are 2.996 0.916 2.303 1.386 1.609: nearest 3, then 4, then 1.
  s.typical_p = 0.2F;
  EXPECT_EQ(kept(s, kShares), (Ids{3}));
  s.typical_p = 0.4F;
  EXPECT_EQ(kept(s, kShares), (Ids{3, 4}));
  s.typical_p = 0.5F;
  EXPECT_EQ(kept(s, kShares), (Ids{1, 3, 4}));
}

TEST(Sampler, PenaltiesAndBias) {
  SamplingSettings s;
  s.greedy = true;
  s.repetition_penalty = 2.0F;
  s.presence_penalty = 0.5F;
  s.frequency_penalty = 0.25F;
  s.logit_bias = {{2, 10.0F}};
  Sampler sampler(s, Ids{0, 1}, 0);
  sampler.accept(1);
  sampler.accept(1);
  sampler.accept(3);
  std::vector<float> logits{4.0F, -1.0F, 0.5F, 1.0F};
  EXPECT_EQ(sampler.choose(logits, {}), 2U);
  EXPECT_FLOAT_EQ(logits[0], 2.0F);                 // of the prompt
  EXPECT_FLOAT_EQ(logits[1], -2.0F - 0.5F - 0.5F);  // twice in the answer
  EXPECT_FLOAT_EQ(logits[2], 10.5F);
  EXPECT_FLOAT_EQ(logits[3], 0.5F - 0.5F - 0.25F);
  EXPECT_EQ(sampler.choose(logits, Ids{2}), 0U);
}

TEST(Sampler, SeedsRepeat) {
  std::vector<Ids> runs;
  for (const std::uint64_t seed : {7ULL, 7ULL, 8ULL}) {
    Sampler sampler(seeded(seed), {}, 0);
    Ids ids;
    for (int i = 0; i < 40; ++i) {
      std::vector<float> logits(50, 0.0F);
      ids.push_back(sampler.choose(logits, {}));
    }
    runs.push_back(ids);
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_NE(runs[0], runs[2]);
}

TEST(Sampler, OddLogitsDoNoHarm) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  Sampler sampler(seeded(), {}, 0);
  std::vector<float> all_nan(4, nan), none(4, -inf), one{-inf, nan, inf, 0.0F};
  EXPECT_LT(sampler.choose(all_nan, {}), 4U);
  EXPECT_LT(sampler.choose(none, {}), 4U);
  EXPECT_EQ(sampler.choose(one, {}), 2U);
}

TEST(Sampler, SettingsOutOfRangeAreNamed) {
  const auto expect = [](const char* name, auto change) {
    SamplingSettings s;
    change(s);
    testing::expect_error(ErrorCode::invalid_argument, [&] { check_sampling(s, 10); }, {name});
  };
  expect("temperature", [](SamplingSettings& s) { s.temperature = -1.0F; });
  expect("top_k", [](SamplingSettings& s) { s.top_k = -1; });
  expect("top_p", [](SamplingSettings& s) { s.top_p = 0.0F; });
  expect("min_p", [](SamplingSettings& s) { s.min_p = 1.5F; });
  expect("typical_p", [](SamplingSettings& s) { s.typical_p = 0.0F; });
  expect("repetition_penalty", [](SamplingSettings& s) { s.repetition_penalty = 0.0F; });
  expect("presence_penalty", [](SamplingSettings& s) { s.presence_penalty = std::nanf(""); });
  expect("frequency_penalty", [](SamplingSettings& s) { s.frequency_penalty = std::nanf(""); });
  expect("logit_bias", [](SamplingSettings& s) { s.logit_bias = {{10, 1.0F}}; });
  check_sampling(SamplingSettings(), 10);
}

TEST(Logprobs, AreLogarithmsOfShares) {
  std::vector<float> logits;
  for (const float p : kShares) logits.push_back(std::log(p) - 7.0F);
  const Logprobs l(logits);
  EXPECT_NEAR(l.of(2).logprob, std::log(0.1F), 1e-5F);
  const auto top = l.top(3);
  ASSERT_EQ(top.size(), 3U);
  EXPECT_EQ(top[0].id, 1U);
  EXPECT_EQ(top[1].id, 3U);
  EXPECT_EQ(top[2].id, 4U);
  EXPECT_EQ(l.top(99).size(), 5U);
}

// Tokens are bytes.
std::string bytes_of(std::span<const TokenId> ids) {
  std::string text;
  for (const TokenId id : ids) text += static_cast<char>(id);
  return text;
}

TEST(AnswerText, WholeCharactersAndStopTexts) {
  const std::function<std::string(std::span<const TokenId>)> detokenize = bytes_of;
  const std::vector<std::string> stop{"STOP", "TOP!"};
  AnswerText text(detokenize, stop);
  std::vector<std::string> pieces;
  for (const char c : std::string("a\xC3\xA9 STO ST")) pieces.push_back(text.add(static_cast<unsigned char>(c)));
  EXPECT_EQ(pieces, (std::vector<std::string>{"a", "", "\xC3\xA9", " ", "", "", "", "STO ", "", ""}));
  EXPECT_EQ(text.add('O'), "");
  EXPECT_EQ(text.add('P'), "");
  EXPECT_TRUE(text.stopped());
  EXPECT_EQ(text.stop(), "STOP");
  EXPECT_EQ(text.text(), "a\xC3\xA9 STO ");
  EXPECT_EQ(text.finish(), "");
  AnswerText other(detokenize, stop);
  for (const char c : std::string("xST")) other.add(static_cast<unsigned char>(c));
  EXPECT_EQ(other.text(), "x");
  EXPECT_EQ(other.finish(), "ST");
  EXPECT_EQ(other.text(), "xST");
  const std::function<std::string(std::span<const TokenId>)> nobody;
  AnswerText silent(nobody, stop);
  EXPECT_EQ(silent.add('x'), "");
  EXPECT_EQ(silent.finish(), "");
}

}  // namespace
}  // namespace sdx::text
