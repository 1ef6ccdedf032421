#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "speech/features/features.h"

namespace sdx::speech {
namespace {

FrameSettings frames_of(const WhisperFeatureSettings& s) {
  FrameSettings f;
  f.rate = static_cast<double>(s.rate);
  f.length = f.fft = s.fft;
  f.hop = s.hop;
  return f;
}

MelSettings mel_of(const WhisperFeatureSettings& s) {
  return {.scale = MelScale::slaney, .bins = s.bins, .low = 0, .high = 8000, .equal_area = true};
}

}  // namespace

WhisperFrames::WhisperFrames(const WhisperFeatureSettings& settings)
    : settings_(settings), mel_(frames_of(settings), mel_of(settings)) {}

void WhisperFrames::push(std::span<const float> samples, const TakeRows& take) {
  samples_ += static_cast<std::int64_t>(samples.size());
  std::vector<float> rows;
  mel_.push(samples, [&](std::span<const double> energies, std::span<const double>) {
    rows.resize(energies.size());
    std::transform(energies.begin(), energies.end(), rows.begin(),
                   [](double e) { return static_cast<float>(std::log10(std::max(e, 1e-10))); });
    rows_ += static_cast<std::int64_t>(rows.size()) / settings_.bins;
    take(rows);
  });
}

void WhisperFrames::finish(const TakeRows& take) {
  const std::int64_t sound = samples_, chunk = settings_.chunk_seconds * settings_.rate;
  if (sound < chunk) {
    const std::vector<float> silence(static_cast<std::size_t>(chunk - sound));
    push(silence, take);
    samples_ = sound;
  }
  const std::int64_t wanted = std::max(sound, chunk) / settings_.hop;
  std::vector<float> rows;
  mel_.finish([&](std::span<const double> energies, std::span<const double>) {
    // The extractor leaves out the last frame.
    rows.resize(static_cast<std::size_t>(std::max<std::int64_t>(0, wanted - rows_) * settings_.bins));
    std::transform(energies.begin(), energies.begin() + static_cast<std::ptrdiff_t>(rows.size()), rows.begin(),
                   [](double e) { return static_cast<float>(std::log10(std::max(e, 1e-10))); });
    rows_ = wanted;
    if (!rows.empty()) take(rows);
  });
}

Features whisper_features(std::span<const float> samples, const WhisperFeatureSettings& settings) {
  Features f{settings.bins, {}};
  const TakeRows take = [&](std::span<const float> rows) { f.values.insert(f.values.end(), rows.begin(), rows.end()); };
  WhisperFrames frames(settings);
  frames.push(samples, take);
  frames.finish(take);
  const float most = *std::max_element(f.values.begin(), f.values.end());
  for (float& v : f.values) v = whisper_range(v, most);
  return f;
}

}  // namespace sdx::speech
