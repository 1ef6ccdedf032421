#include "speech/voice/intervals.h"

#include <gtest/gtest.h>

#include <limits>

#include <sdx/error.hpp>

namespace sdx::speech {
namespace {

using Ranges = std::vector<SampleRange>;

// Chunks of one sample, ten of which are a second.
Ranges ranges(const std::vector<float>& probabilities, const VoiceSettings& settings) {
  check(settings);
  return speech_ranges(probabilities, 1, static_cast<std::int64_t>(probabilities.size()), 10, settings);
}

VoiceSettings tight() {
  VoiceSettings s;
  s.min_silence = 0.3;
  s.padding = 0;
  return s;
}

TEST(Intervals, ShortPausesBelongToTheSpeech) {
  EXPECT_EQ(ranges({0, 0.9F, 0.9F, 0, 0, 0.9F, 0, 0, 0, 0, 0.6F, 0.4F, 0.4F, 0.4F, 0.4F}, tight()), (Ranges{{1, 6}, {10, 15}}))
      << "0.4 is less than speech and more than silence";
  EXPECT_EQ(ranges({}, tight()), Ranges{});
  EXPECT_EQ(ranges({0.4F, 0, 0.4F}, tight()), Ranges{});
}

TEST(Intervals, PaddingIsSharedWhereTheSilenceIsShort) {
  VoiceSettings s = tight();
  s.padding = 0.4;
  EXPECT_EQ(ranges({0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0}, s), (Ranges{{0, 6}, {7, 12}})) << "one of five samples is nobody's";
}

TEST(Intervals, WhatIsTooShortOrTooLong) {
  VoiceSettings s = tight();
  s.min_speech = 0.2;
  EXPECT_EQ(ranges({1, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0}, s), (Ranges{{5, 8}}));
  s = tight();
  s.max_speech = 0.5;  // cut when it lasts longer than this without its last chunk
  EXPECT_EQ(ranges(std::vector<float>(9, 1.0F), s), (Ranges{{0, 5}, {6, 9}}));
}

TEST(Intervals, ImpossibleSettingsAreNamed) {
  const auto refused = [](auto change) {
    VoiceSettings s;
    change(s);
    EXPECT_THROW(check(s), Error);
  };
  refused([](VoiceSettings& s) { s.threshold = 1.5; });
  refused([](VoiceSettings& s) { s.silence_threshold = -1; });
  refused([](VoiceSettings& s) { s.min_silence = -0.1; });
  refused([](VoiceSettings& s) { s.padding = std::numeric_limits<double>::quiet_NaN(); });
  refused([](VoiceSettings& s) { s.max_speech = 0.8; });
}

TEST(Intervals, TimesOfTheSound) {
  const Ranges all{{20, 30}, {50, 60}};  // speech from 2 to 3 and 5 to 6 s
  const SpeechTimes times(all, 10);
  SpeechSegment s;
  s.start = 0.5;
  s.end = 1.0;
  times.restore(s);
  EXPECT_DOUBLE_EQ(s.start, 2.5);
  EXPECT_DOUBLE_EQ(s.end, 3.0) << "an end at the border belongs to the first range";
  s.start = 1.0;
  s.end = 2.5;
  times.restore(s);
  EXPECT_DOUBLE_EQ(s.start, 5.0);
  EXPECT_DOUBLE_EQ(s.end, 6.5) << "behind the last range";
  s.words = {{0.75, 1.125, "a", 1}, {1.125, 1.5, " b", 1}};
  times.restore(s);
  EXPECT_DOUBLE_EQ(s.start, 2.75);
  EXPECT_DOUBLE_EQ(s.words[0].end, 3.125) << "a word lies in one range";
  EXPECT_DOUBLE_EQ(s.words[1].start, 5.125);
  EXPECT_DOUBLE_EQ(s.end, 5.5);
  SpeechTimes({}, 10).restore(s);
  EXPECT_DOUBLE_EQ(s.start, 2.75);
}

}  // namespace
}  // namespace sdx::speech
