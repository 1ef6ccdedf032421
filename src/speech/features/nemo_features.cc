#include <cmath>

#include "base/error.h"
#include "speech/features/features.h"

namespace sdx::speech {
namespace {

// In double precision: a filter whose logarithm hardly changes is divided by a small number.
void normalize(std::vector<double>& values, std::size_t bins) {
  constexpr double kLeast = 1e-5;
  const std::size_t count = values.size() / bins;
  for (std::size_t b = 0; b < bins; ++b) {
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < count; ++i) sum += values[i * bins + b];
    const double mean = count == 0 ? 0 : sum / static_cast<double>(count);
    for (std::size_t i = 0; i < count; ++i) squares += (values[i * bins + b] - mean) * (values[i * bins + b] - mean);
    const double deviation = (count < 2 ? 0 : std::sqrt(squares / static_cast<double>(count - 1))) + kLeast;
    for (std::size_t i = 0; i < count; ++i) values[i * bins + b] = (values[i * bins + b] - mean) / deviation;
  }
}

}  // namespace

Features nemo_features(std::span<const float> samples, const NemoFeatureSettings& s) {
  FrameSettings frames;
  frames.rate = static_cast<double>(s.rate);
  frames.length = s.length;
  frames.hop = s.hop;
  frames.fft = s.fft;
  frames.window = FrameWindow::hann;
  frames.edges = FrameEdges::silent;
  frames.sound_preemphasis = s.preemphasis;
  MelFrames mel(frames, {.scale = MelScale::slaney, .bins = s.bins, .low = 0, .high = frames.rate / 2, .equal_area = true});
  std::vector<double> values;
  const TakeEnergies take = [&](std::span<const double> energies, std::span<const double>) {
    for (const double e : energies) values.push_back(std::log(e + std::ldexp(1.0, -24)));
  };
  mel.push(samples, take);
  mel.finish(take);
  // One for each hop: the frame at the sound's very end does not count.
  values.resize(samples.size() / static_cast<std::size_t>(s.hop) * static_cast<std::size_t>(s.bins));
  if (s.normalize) normalize(values, static_cast<std::size_t>(s.bins));
  return {s.bins, {values.begin(), values.end()}};
}

}  // namespace sdx::speech
