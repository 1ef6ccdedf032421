#include "speech/voice/intervals.h"

#include <algorithm>
#include <optional>

#include "base/error.h"

namespace sdx::speech {
namespace {

// Goes through chunks in order.
class Finder {
 public:
  Finder(std::int64_t rate, std::int64_t chunk, const VoiceSettings& s)
      : silence_(s.silence_threshold.value_or(std::max(s.threshold - 0.15, 0.01))),
        threshold_(s.threshold),
        min_speech_(s.min_speech * static_cast<double>(rate)),
        min_silence_(s.min_silence * static_cast<double>(rate)),
        max_speech_((s.max_speech - 2 * s.padding) * static_cast<double>(rate) - static_cast<double>(chunk)),
        short_silence_(0.098 * static_cast<double>(rate)) {}

  void add(double probability, std::int64_t at) {
    const bool speech = probability >= threshold_;
    if (speech && quiet_since_) {
      quiet_since_.reset();
      if (next_begin_ < cut_) next_begin_ = at;
    }
    if (!begin_) {
      if (speech) begin_ = at;
      return;
    }
    if (static_cast<double>(at - *begin_) > max_speech_ && cut_speech(at)) return;
    if (begin_ && probability < silence_) add_silence(at);
  }

  std::vector<SampleRange> finish(std::int64_t length) {
    if (begin_ && static_cast<double>(length - *begin_) > min_speech_) found_.push_back({*begin_, length});
    return std::move(found_);
  }

 private:
  // Speech that has lasted too long ends at its last short pause, else here. Returns whether nothing is left to do at this chunk.
  bool cut_speech(std::int64_t at) {
    const bool paused = cut_ > 0;
    found_.push_back({*begin_, paused ? cut_ : at});
    const bool goes_on = paused && next_begin_ >= cut_;
    begin_ = goes_on ? std::optional(next_begin_) : std::nullopt;
    forget_pauses();
    return !paused;
  }

  void add_silence(std::int64_t at) {
    if (!quiet_since_) quiet_since_ = at;
    const auto quiet = static_cast<double>(at - *quiet_since_);
    if (quiet > short_silence_) cut_ = *quiet_since_;
    if (quiet < min_silence_) return;
    if (static_cast<double>(*quiet_since_ - *begin_) > min_speech_) found_.push_back({*begin_, *quiet_since_});
    begin_.reset();
    forget_pauses();
  }

  void forget_pauses() {
    quiet_since_.reset();
    cut_ = next_begin_ = 0;
  }

  double silence_, threshold_, min_speech_, min_silence_, max_speech_, short_silence_;
  std::optional<std::int64_t> begin_, quiet_since_;
  std::int64_t cut_ = 0, next_begin_ = 0;  // the last short pause, and where speech goes on behind it
  std::vector<SampleRange> found_;
};

// Into the silence around, of which neighbours take half each where it is short.
void pad(std::vector<SampleRange>& ranges, std::int64_t length, std::int64_t padding) {
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    SampleRange& range = ranges[i];
    if (i == 0) range.begin = std::max<std::int64_t>(0, range.begin - padding);
    if (i + 1 == ranges.size()) {
      range.end = std::min(length, range.end + padding);
      continue;
    }
    SampleRange& next = ranges[i + 1];
    const std::int64_t silence = next.begin - range.end, taken = silence < 2 * padding ? silence / 2 : padding;
    range.end = std::min(length, range.end + taken);
    next.begin = std::max<std::int64_t>(0, next.begin - taken);
  }
}

}  // namespace

void check(const VoiceSettings& s) {
  const auto within = [](const char* name, double value, double least, double most) {
    if (!(value >= least && value <= most)) {
      fail(ErrorCode::invalid_argument, "the voice setting {} = {} is impossible; expected {} to {}", name, value, least, most);
    }
  };
  constexpr double kDay = 86400;
  within("threshold", s.threshold, 0, 1);
  if (s.silence_threshold) within("silence_threshold", *s.silence_threshold, 0, 1);
  within("min_speech", s.min_speech, 0, kDay);
  within("min_silence", s.min_silence, 0, kDay);
  within("padding", s.padding, 0, kDay);
  if (!(s.max_speech > 2 * s.padding)) {
    fail(ErrorCode::invalid_argument, "the voice setting max_speech = {} leaves nothing between paddings of {} s", s.max_speech,
         s.padding);
  }
}

std::vector<SampleRange> speech_ranges(std::span<const float> probabilities, std::int64_t chunk, std::int64_t length,
                                       std::int64_t rate, const VoiceSettings& settings) {
  Finder finder(rate, chunk, settings);
  std::int64_t at = 0;
  for (const float p : probabilities) {
    finder.add(static_cast<double>(p), at);
    at += chunk;
  }
  std::vector<SampleRange> ranges = finder.finish(length);
  pad(ranges, length, static_cast<std::int64_t>(settings.padding * static_cast<double>(rate)));
  return ranges;
}

SpeechTimes::SpeechTimes(std::span<const SampleRange> ranges, std::int64_t rate) : rate_(rate) {
  std::int64_t silent = 0, end = 0;
  for (const SampleRange& range : ranges) {
    silent += range.begin - end;
    end = range.end;
    ends_.push_back(range.end - silent);
    before_.push_back(static_cast<double>(silent) / static_cast<double>(rate));
  }
}

std::size_t SpeechTimes::range_at(double time, bool is_end) const {
  const auto sample = static_cast<std::int64_t>(time * static_cast<double>(rate_));
  const auto found =
      is_end ? std::lower_bound(ends_.begin(), ends_.end(), sample) : std::upper_bound(ends_.begin(), ends_.end(), sample);
  return std::min(static_cast<std::size_t>(found - ends_.begin()), ends_.size() - 1);
}

void SpeechTimes::restore(SpeechSegment& segment) const {
  if (ends_.empty()) return;
  for (SpeechWord& word : segment.words) {
    const double before = before_[range_at((word.start + word.end) / 2, false)];
    word.start += before;
    word.end += before;
  }
  if (!segment.words.empty()) {
    segment.start = segment.words.front().start;
    segment.end = segment.words.back().end;
    return;
  }
  segment.start += before_[range_at(segment.start, false)];
  segment.end += before_[range_at(segment.end, true)];
}

}  // namespace sdx::speech
