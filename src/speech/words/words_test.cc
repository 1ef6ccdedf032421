#include "speech/words/words.h"

#include <gtest/gtest.h>

#include "speech/words/alignment.h"

namespace sdx::speech {
namespace {

using Tokens = std::vector<TokenId>;

// Bytes as GPT-2 writes them: "Ġ" is a space; 5 and 6 are the two halves of "ä".
Tokenizer bytes() {
  return Tokenizer::from_json(R"({"version":"1.0","decoder":{"type":"ByteLevel"},"model":{"type":"BPE","merges":[],
    "vocab":{"a":0,"b":1,"Ġa":2,".":3,"Ġ(":4,"Ã":5,"¤":6,"Ġ":7,"!":8}}})");
}

std::vector<std::string> texts(const std::vector<TimedWord>& words) {
  std::vector<std::string> out;
  for (const TimedWord& w : words) out.push_back(w.text + "/" + std::to_string(w.tokens));
  return out;
}

using Texts = std::vector<std::string>;

TEST(Words, BeginAtSpacesAndPunctuation) {
  const auto split = [](const Tokens& tokens, const char* language = "en") {
    return texts(split_words(bytes(), tokens, language));
  };
  EXPECT_EQ(split({0, 1, 2, 1, 3}), (Texts{"ab/2", " ab/2", "./1"}));
  EXPECT_EQ(split({4, 0, 3, 8}), (Texts{" (a/2", "./1", "!/1"}));
  EXPECT_EQ(split({0, 5, 6, 1}), (Texts{"aäb/4"})) << "a character in two tokens";
  EXPECT_EQ(split({0, 5, 6, 1}, "ja"), (Texts{"a/1", "ä/2", "b/1"}));
  EXPECT_EQ(split({0, 5}), (Texts{"a\xEF\xBF\xBD/2"})) << "half a character";
  EXPECT_EQ(split({}), Texts{});
}

TEST(Words, PunctuationBelongsToItsNeighbour) {
  std::vector<TimedWord> words{{" (", 1, 0, 1}, {"a", 1, 1, 2}, {".", 1, 2, 3}, {"”", 2, 3, 4}, {" b", 1, 4, 5}};
  join_punctuation(words);
  EXPECT_EQ(texts(words), (Texts{"/0", " (a.”/5", "/0", "/0", " b/1"}));
  EXPECT_EQ(words[1].start, 1) << "times stay";
}

TEST(Words, LongOnesAtTheEndsOfSentencesBecomeShorter) {
  std::vector<TimedWord> words{{"a", 1, 0, 0.25}, {".", 1, 0.25, 2}, {" b", 1, 2, 4}, {" c", 1, 4, 4.25}, {" d", 1, 4.25, 4.5}};
  EXPECT_DOUBLE_EQ(usual_duration(words), 0.25);
  shorten_at_sentences(words, 0.25);
  EXPECT_DOUBLE_EQ(words[1].end, 0.75);
  EXPECT_DOUBLE_EQ(words[2].start, 3.5);
  EXPECT_EQ(usual_duration(std::vector<TimedWord>{{"a", 1, 1, 1}}), 0);
  EXPECT_EQ(usual_duration(std::vector<TimedWord>{{"a", 1, 1, 9}}), 0.7) << "no word is usual for 8 s";
}

SpeechSegment segment(double start, double end, std::vector<SpeechWord> words) {
  SpeechSegment s;
  s.start = start;
  s.end = end;
  s.words = std::move(words);
  return s;
}

TEST(Words, SegmentsBeginAndEndWithThem) {
  SpeechSegment s = segment(0, 5, {{0.5, 1, "a", 1}, {1, 4.8, " b", 1}});
  fit_segment(s, 0.5, 0);
  EXPECT_EQ(std::pair(s.start, s.end), std::pair(0.5, 4.8));
  // Words that are far longer than their segment are cut.
  s = segment(2, 3, {{1, 2.4, "a", 1}, {2.4, 4, " b", 1}});
  fit_segment(s, 0.25, 2);
  EXPECT_DOUBLE_EQ(s.words[0].start, 2);
  EXPECT_DOUBLE_EQ(s.words[1].end, 3);
  EXPECT_EQ(std::pair(s.start, s.end), std::pair(2.0, 3.0));
  // Behind a pause of 9 s the first word did not begin in it.
  s = segment(1, 11, {{1, 10, "a", 1}, {10, 10.25, " b", 1}});
  fit_segment(s, 0.25, 1);
  EXPECT_DOUBLE_EQ(s.words[0].start, 9.5);
  EXPECT_DOUBLE_EQ(s.start, 9.5);
}

TEST(Words, EachSegmentGetsItsOwn) {
  std::vector<SpeechSegment> segments{segment(10, 11, {}), segment(11, 12, {})};
  double until = 0;
  add_words(segments, std::vector<Tokens>{{0, 3}, {2}}, {{"a", 1, 0, 0.5}, {".", 1, 0.5, 1}, {" a", 1, 1, 1.5}}, 10, until);
  ASSERT_EQ(segments[0].words.size(), 1U);
  EXPECT_EQ(segments[0].words[0].text, "a.");
  ASSERT_EQ(segments[1].words.size(), 1U);
  EXPECT_DOUBLE_EQ(segments[1].words[0].start, 11);
  EXPECT_DOUBLE_EQ(until, 11.5);
}

TEST(Alignment, PathGoesThroughTheGreatestFit) {
  // Three tokens and six positions.
  const std::vector<double> fit{5, 5, -1, -1, -1, -1, -1, -1, 5, -1, -1, -1, -1, -1, -1, 5, 5, 5};
  EXPECT_EQ(path_starts(fit, 3, 6), (std::vector<std::int64_t>{0, 2, 3}));
  EXPECT_EQ(path_starts(std::vector<double>{1}, 1, 1), (std::vector<std::int64_t>{0}));
  EXPECT_EQ(path_starts(std::vector<double>(3), 3, 1), (std::vector<std::int64_t>{0, 0, 0})) << "more tokens than positions";
}

TEST(Alignment, FitIsNormalisedOverTokensAndSmoothed) {
  // Two heads with the same weights; the last two positions of ten are behind the sound.
  std::vector<float> weights;
  for (int head = 0; head < 2; ++head) {
    for (int token = 0; token < 3; ++token) {
      for (int at = 0; at < 10; ++at) weights.push_back(at / 4 == token ? 0.2F : 0.02F);
    }
  }
  weights[1] = 0.9F;  // a single peak that the median takes away
  const std::vector<double> fit = token_fit({weights, 2, 3, 10}, 8, 0, 2);
  ASSERT_EQ(fit.size(), 16U);
  EXPECT_GT(fit[0], 0.5);
  EXPECT_LT(fit[7], 0);
  EXPECT_LT(fit[8], 0);
  EXPECT_GT(fit[15], 0.5);
  const std::vector<float> same(30, 0.1F);
  for (const double x : token_fit({same, 1, 3, 10}, 8, 0, 3)) EXPECT_EQ(x, 0) << "no token stands out";
  for (const double x : token_fit({std::vector<float>(6), 1, 3, 2}, 2, 0, 3)) EXPECT_EQ(x, 0);
}

}  // namespace
}  // namespace sdx::speech
