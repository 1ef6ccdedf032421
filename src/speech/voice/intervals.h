#pragma once
// From probabilities of speech to intervals of it, and from times within these to times of the sound. Source: Silero's
// get_speech_timestamps and faster-whisper's voice filter.

#include <cstdint>
#include <span>
#include <vector>

#include <sdx/speech.hpp>

namespace sdx::speech {

// Samples [begin, end).
struct SampleRange {
  std::int64_t begin = 0, end = 0;
  bool operator==(const SampleRange&) const = default;
};

// `probabilities`: of chunks of `chunk` samples; `length`: of the sound in samples, of which there are `rate` in a second. In
// order, without overlap.
std::vector<SampleRange> speech_ranges(std::span<const float> probabilities, std::int64_t chunk, std::int64_t length,
                                       std::int64_t rate, const VoiceSettings& settings);

// Throws Error(invalid_argument) naming the setting.
void check(const VoiceSettings& settings);

// Times within the speech of a sound, as if that came without pauses, to times of the sound.
class SpeechTimes {
 public:
  SpeechTimes(std::span<const SampleRange> ranges, std::int64_t rate);

  // Sets the times of a segment and of its words, each of which lies in one range.
  void restore(SpeechSegment& segment) const;

 private:
  std::size_t range_at(double time, bool is_end) const;

  std::int64_t rate_;
  std::vector<std::int64_t> ends_;  // of each range, in samples of speech
  std::vector<double> before_;      // seconds without speech before each range
};

}  // namespace sdx::speech
