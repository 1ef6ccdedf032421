#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "speech/output.h"
#include "speech/whisper/decode.h"
#include "speech/whisper/rules.h"
#include "speech/whisper/segments.h"

namespace sdx::speech {
namespace {

using Tokens = std::vector<TokenId>;

// Ten words, the end 10, the start 11, <|notimestamps|> 12, then times 13 (0 s), 14 (0.02 s), …
WhisperSettings small() {
  WhisperSettings s;
  s.vocabulary = 40;
  s.positions = 16;
  s.end = 10;
  s.start = 11;
  s.no_timestamps = 12;
  s.previous = 9;
  return s;
}
constexpr TokenId t(int step) { return static_cast<TokenId>(13 + step); }

Tokens allowed(const WhisperSettings& s, bool timestamps, const Tokens& answer,
               std::vector<float> logits = std::vector<float>(40)) {
  apply_rules(s, timestamps, answer, logits);
  Tokens left;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] != -std::numeric_limits<float>::infinity()) left.push_back(static_cast<TokenId>(i));
  }
  return left;
}

Tokens range(TokenId from, TokenId to) {
  Tokens out(to - from);
  std::iota(out.begin(), out.end(), from);
  return out;
}

// Words are more probable than times.
std::vector<float> wordy() {
  std::vector<float> logits(40);
  std::fill_n(logits.begin(), 13, 20.0F);
  return logits;
}

TEST(WhisperRules, ATimeComesFirstAndNotTooLate) {
  WhisperSettings s = small();
  EXPECT_EQ(allowed(s, true, {}), range(13, 40));
  s.most_initial_timestamp = 3;
  EXPECT_EQ(allowed(s, true, {}), range(13, 17));
}

TEST(WhisperRules, TimesComeInPairsAndDoNotGoBack) {
  const WhisperSettings s = small();
  EXPECT_EQ(allowed(s, true, {t(0)}, wordy()), range(0, 12)) << "text after the first time";
  // After text any later time, or more text.
  Tokens expected = range(0, 12);
  for (const TokenId id : range(t(3), 40)) expected.push_back(id);
  EXPECT_EQ(allowed(s, true, {t(2), 1}, wordy()), expected);
  // After a segment's end: its twin or a later one, or the end of all.
  expected = range(10, 12);
  for (const TokenId id : range(t(5), 40)) expected.push_back(id);
  EXPECT_EQ(allowed(s, true, {t(2), 1, t(5)}, wordy()), expected);
}

TEST(WhisperRules, TimesThatAreMoreProbableTogetherThanAnyTextWin) {
  const WhisperSettings s = small();
  std::vector<float> logits(40);
  logits[3] = 3.0F;  // below log(27 - 3)
  EXPECT_EQ(allowed(s, true, {t(2), 1}, logits), range(t(3), 40));
  logits[3] = 3.3F;
  EXPECT_EQ(allowed(s, true, {t(2), 1}, logits).front(), 0U);
}

TEST(WhisperRules, NamedTokensAreForbidden) {
  WhisperSettings s = small();
  s.suppress = {1, 400};
  s.suppress_at_begin = {2};
  EXPECT_EQ(allowed(s, false, {}).size(), 38U);
  EXPECT_EQ(allowed(s, false, {5}).size(), 39U);
}

struct Cut {
  Tokens tokens;
  std::vector<std::tuple<std::int64_t, std::int64_t, Tokens>> segments;
  std::int64_t advance;
};

TEST(WhisperSegments, AreCutBetweenPairsOfTimes) {
  const WhisperSettings s = small();
  const std::vector<Cut> cases{
      {{}, {}, 200},
      {{t(0), 1, 2, t(9)}, {{0, 18, {t(0), 1, 2, t(9)}}}, 200},  // one segment, silence behind it
      {{t(0), 1, 2}, {{0, 200, {t(0), 1, 2}}}, 200},             // no end
      {{1, 2}, {{0, 200, {1, 2}}}, 200},                         // no times
      {{t(0), 1, t(4), t(5), 2}, {{0, 8, {t(0), 1, t(4)}}}, 8},  // the second is not finished
      {{t(0), 1, t(4), t(5), 2, t(9)}, {{0, 8, {t(0), 1, t(4)}}, {10, 18, {t(5), 2, t(9)}}}, 200},  // both are
      {{t(0), 1, t(4), t(4)}, {{0, 8, {t(0), 1, t(4)}}}, 8},                                        // more speech from there
      {{t(0), t(0)}, {{0, 0, {t(0)}}}, 200},                                                        // never stand still
  };
  for (const Cut& c : cases) {
    const CutWindow cut = cut_window(s, c.tokens, 200);
    EXPECT_EQ(cut.advance, c.advance) << ::testing::PrintToString(c.tokens);
    ASSERT_EQ(cut.segments.size(), c.segments.size()) << ::testing::PrintToString(c.tokens);
    for (std::size_t i = 0; i < cut.segments.size(); ++i) {
      const auto& [start, end, tokens] = c.segments[i];
      EXPECT_EQ(cut.segments[i].start, start) << ::testing::PrintToString(c.tokens);
      EXPECT_EQ(cut.segments[i].end, end) << ::testing::PrintToString(c.tokens);
      EXPECT_EQ(cut.segments[i].tokens, tokens);
    }
  }
}

TEST(WhisperPrompt, KeepsTheEndOfWhatWasSaid) {
  const WhisperSettings s = small();
  const Tokens begin{11};
  EXPECT_EQ(prompt_of(s, {}, begin), begin);
  EXPECT_EQ(prompt_of(s, Tokens{1, 2}, begin), (Tokens{9, 1, 2, 11}));
  EXPECT_EQ(prompt_of(s, range(0, 9), begin), (Tokens{9, 2, 3, 4, 5, 6, 7, 8, 11})) << "half of the positions";
}

TEST(WhisperDecode, RepetitionCompresses) {
  EXPECT_EQ(compression_ratio(""), 0);
  EXPECT_LT(compression_ratio("The quick brown fox jumps over the lazy dog."), 1.2);
  std::string again;
  for (int i = 0; i < 30; ++i) again += "thank you. ";
  EXPECT_GT(compression_ratio(again), 2.4);
}

TEST(WhisperDecode, LogarithmsOfSums) {
  EXPECT_NEAR(log_sum(std::vector<float>(8, 100.0F)), 100 + std::log(8.0), 1e-9);
  EXPECT_EQ(log_sum(std::vector<float>(2, -std::numeric_limits<float>::infinity())), -std::numeric_limits<double>::infinity());
}

Transcript two_segments() {
  Transcript all;
  all.language = "en";
  all.duration = 3723.5;
  all.text = " A < b --> c\n d. \"e\"";
  all.segments = {{0, 1.5, " A < b --> c\n d.", {1, 2}, 0, -0.5, 1, 0.25}, {3722.0004, 3723.4996, " \"e\"", {3}, 0.2, -1, 1, 0}};
  return all;
}

TEST(SpeechOutput, Subtitles) {
  EXPECT_EQ(as_text(two_segments()), "A < b --> c d.\n\"e\"\n");
  EXPECT_EQ(as_srt(two_segments()),
            "1\n00:00:00,000 --> 00:00:01,500\nA < b -> c d.\n\n2\n01:02:02,000 --> 01:02:03,500\n\"e\"\n\n");
  EXPECT_EQ(as_vtt(two_segments()),
            "WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nA &lt; b --&gt; c d.\n\n01:02:02.000 --> 01:02:03.500\n\"e\"\n\n");
  EXPECT_EQ(clock_time(-1, ','), "00:00:00,000");
}

TEST(SpeechOutput, Json) {
  const std::string json = json_members(two_segments(), false);
  EXPECT_TRUE(
      json.starts_with(R"("duration_s":3723.500,"language":"en","text":" A < b --> c\n d. \"e\"","segments":[{"start":0.000,)"))
      << json;
  EXPECT_NE(json.find(R"("tokens":[1,2],"temperature":0,"avg_logprob":-0.500000)"), std::string::npos) << json;
  EXPECT_EQ(json.find("words"), std::string::npos);
}

TEST(SpeechOutput, TimesOfWords) {
  Transcript all = two_segments();
  all.segments[0].words = {{0, 0.5, " A", 1}, {0.5, 1, " <", 0.5}, {1, 1.5, "b", 0.25}};
  EXPECT_TRUE(as_vtt(all).find("\nA<00:00:00.500> &lt;<00:00:01.000>b\n") != std::string::npos) << as_vtt(all);
  const std::string json = json_members(all, true);
  EXPECT_NE(json.find(R"("words":[{"word":" A","start":0.000,"end":0.500,"probability":1.000000},{"word":" <",)"),
            std::string::npos)
      << json;
  EXPECT_TRUE(json.ends_with(R"("words":[]}])")) << json;
}

}  // namespace
}  // namespace sdx::speech
