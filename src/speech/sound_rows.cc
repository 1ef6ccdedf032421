#include "speech/sound_rows.h"

#include <algorithm>
#include <cmath>

#include "media/sound/resample.h"

namespace sdx::speech {
namespace {

// Features of this many bytes are kept from the pass that finds their greatest number; longer sounds are read once more.
constexpr std::size_t kKeptBytes = std::size_t{64} << 20;

// A sound's samples at another rate.
class Samples {
 public:
  explicit Samples(int rate) : to_(rate) {}

  void run(const SoundSource& source, const std::function<void(std::span<const float>)>& take) {
    std::optional<media::Resampler> resampler;
    std::vector<float> samples;
    const auto begin = [&](int rate, int) {
      resampler.emplace(rate, to_);
      rate_ = rate;
    };
    const auto push = [&](std::span<const float> piece) {
      received_ += static_cast<std::int64_t>(piece.size());
      samples.clear();
      resampler->push(piece, samples);
      take(samples);
    };
    source({begin, push});
    samples.clear();
    if (resampler) resampler->finish(samples);
    take(samples);
  }
  double seconds() const { return rate_ == 0 ? 0 : static_cast<double>(received_) / rate_; }

 private:
  int to_, rate_ = 0;
  std::int64_t received_ = 0;
};

// Lets through what is in ranges.
class Chosen {
 public:
  explicit Chosen(const std::vector<SampleRange>& ranges) : ranges_(ranges) {}

  void push(std::span<const float> samples, const std::function<void(std::span<const float>)>& take) {
    const std::int64_t end = at_ + static_cast<std::int64_t>(samples.size());
    for (; next_ < ranges_.size() && ranges_[next_].begin < end; ++next_) {
      const SampleRange& range = ranges_[next_];
      const std::int64_t from = std::max(range.begin, at_), to = std::min(range.end, end);
      if (from < to) take(samples.subspan(static_cast<std::size_t>(from - at_), static_cast<std::size_t>(to - from)));
      if (range.end > end) break;
    }
    at_ = end;
  }

 private:
  const std::vector<SampleRange>& ranges_;
  std::size_t next_ = 0;
  std::int64_t at_ = 0;
};

// A sound at the model's rate as rows of features.
class FeatureStream {
 public:
  explicit FeatureStream(const WhisperFeatureSettings& settings)
      : rate_(static_cast<double>(settings.rate)), samples_(static_cast<int>(settings.rate)), frames_(settings) {}

  void run(const SoundSource& source, const std::optional<std::vector<SampleRange>>& speech, const TakeRows& take) {
    std::optional<Chosen> chosen;
    if (speech) chosen.emplace(*speech);
    const auto hear = [&](std::span<const float> samples) {
      heard_ += static_cast<std::int64_t>(samples.size());
      frames_.push(samples, take);
    };
    samples_.run(source, [&](std::span<const float> samples) {
      if (chosen) {
        chosen->push(samples, hear);
      } else {
        hear(samples);
      }
    });
    frames_.finish(take);
  }

  std::int64_t sound_frames() const { return frames_.sound_frames(); }
  double seconds() const { return samples_.seconds(); }
  double heard_seconds() const { return static_cast<double>(heard_) / rate_; }

 private:
  double rate_;
  Samples samples_;
  WhisperFrames frames_;
  std::int64_t heard_ = 0;
};

}  // namespace

SoundSource bytes_source(std::span<const std::byte> sound) {
  return [sound](const media::SoundSink& sink) { media::stream_sound(sound, sink); };
}

SoundSource samples_source(std::span<const float> samples, int rate) {
  return [=](const media::SoundSink& sink) {
    constexpr std::size_t kPiece = std::size_t{1} << 16;
    sink.begin(rate, 1);
    std::vector<float> piece;
    for (std::size_t at = 0; at < samples.size(); at += piece.size()) {
      piece.assign(samples.begin() + static_cast<std::ptrdiff_t>(at),
                   samples.begin() + static_cast<std::ptrdiff_t>(std::min(samples.size(), at + kPiece)));
      for (float& x : piece) x = std::isfinite(x) ? std::clamp(x, -1e6F, 1e6F) : 0.0F;
      sink.take(piece);
    }
  };
}

SoundFacts find_facts(const SoundSource& source, const WhisperFeatureSettings& settings,
                      const std::optional<std::vector<SampleRange>>& speech) {
  SoundFacts facts;
  FeatureStream stream(settings);
  stream.run(source, speech, [&](std::span<const float> rows) {
    facts.most = std::max(facts.most, *std::max_element(rows.begin(), rows.end()));
    facts.kept = facts.kept && (facts.rows.size() + rows.size()) * sizeof(float) <= kKeptBytes;
    if (facts.kept) {
      facts.rows.insert(facts.rows.end(), rows.begin(), rows.end());
    } else {
      facts.rows = {};
    }
  });
  facts.frames = stream.sound_frames();
  facts.seconds = stream.seconds();
  facts.heard_seconds = speech ? stream.heard_seconds() : stream.seconds();
  return facts;
}

void run_rows(const SoundSource& source, const WhisperFeatureSettings& settings,
              const std::optional<std::vector<SampleRange>>& speech, const TakeRows& take) {
  FeatureStream(settings).run(source, speech, take);
}

std::vector<SampleRange> find_speech(const SoundSource& source, const VoiceNetwork& network, const VoiceSettings& settings,
                                     std::int64_t rate, const std::optional<CancelToken>& cancel) {
  check(settings);
  VoiceStream voice(network, cancel);
  std::int64_t length = 0;
  Samples(kVoiceRate).run(source, [&](std::span<const float> samples) {
    length += static_cast<std::int64_t>(samples.size());
    voice.push(samples);
  });
  std::vector<SampleRange> ranges = speech_ranges(voice.finish(), kVoiceChunk, length, kVoiceRate, settings);
  for (SampleRange& range : ranges) range = {range.begin * rate / kVoiceRate, range.end * rate / kVoiceRate};
  return ranges;
}

}  // namespace sdx::speech
