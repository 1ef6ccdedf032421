#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/error.h"
#include "speech/features/features.h"

namespace sdx::speech {
namespace {

struct Banks {
  Features logs;                 // of the filters
  std::vector<double> energies;  // logarithms, of whole frames
};

Banks banks_of(std::span<const float> samples, const KaldiSettings& s) {
  FrameSettings frames;
  frames.rate = s.rate;
  frames.length = static_cast<std::int64_t>(s.rate * 0.001 * s.length_ms);
  frames.hop = static_cast<std::int64_t>(s.rate * 0.001 * s.hop_ms);
  frames.fft =
      static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(frames.length, 2, 1 << 20))));
  frames.window = s.window;
  frames.edges = s.snip_edges ? FrameEdges::inside : FrameEdges::mirrored;
  frames.scale = s.scale;
  frames.remove_mean = s.remove_mean;
  frames.preemphasis = s.preemphasis;
  const double high = s.high > 0 ? s.high : s.rate / 2 + s.high;
  MelFrames mel(frames, {.scale = MelScale::kaldi, .bins = s.bins, .low = s.low, .high = high, .equal_area = false});
  Banks b;
  b.logs.bins = s.bins;
  const TakeEnergies take = [&](std::span<const double> energies, std::span<const double> whole) {
    constexpr auto kLeast = static_cast<double>(std::numeric_limits<float>::epsilon());
    for (const double e : energies) b.logs.values.push_back(static_cast<float>(std::log(std::max(e, kLeast))));
    b.energies.insert(b.energies.end(), whole.begin(), whole.end());
  };
  mel.push(samples, take);
  mel.finish(take);
  return b;
}

// Rows of the orthonormal cosine transform, times the lifter.
std::vector<double> cepstral_matrix(const KaldiSettings& s) {
  const auto bins = static_cast<std::size_t>(s.bins);
  std::vector<double> matrix(static_cast<std::size_t>(s.coefficients) * bins);
  const auto n = static_cast<double>(s.bins);
  for (std::size_t k = 0; k < matrix.size() / bins; ++k) {
    const auto order = static_cast<double>(k);
    const double lift = s.lifter == 0 ? 1 : 1 + 0.5 * s.lifter * std::sin(std::numbers::pi * order / s.lifter);
    for (std::size_t m = 0; m < bins; ++m) {
      const double cosine = std::cos(std::numbers::pi / n * (static_cast<double>(m) + 0.5) * order);
      matrix[k * bins + m] = lift * std::sqrt((k == 0 ? 1 : 2) / n) * cosine;
    }
  }
  return matrix;
}

}  // namespace

Features kaldi_fbank(std::span<const float> samples, const KaldiSettings& s) {
  Banks b = banks_of(samples, s);
  if (!s.use_energy) return std::move(b.logs);
  Features f{s.bins + 1, {}};
  for (std::size_t i = 0; i < b.energies.size(); ++i) {
    f.values.push_back(static_cast<float>(b.energies[i]));
    const float* row = b.logs.values.data() + i * static_cast<std::size_t>(s.bins);
    f.values.insert(f.values.end(), row, row + s.bins);
  }
  return f;
}

Features kaldi_mfcc(std::span<const float> samples, const KaldiSettings& s) {
  if (s.coefficients < 1 || s.coefficients > s.bins) {
    fail(ErrorCode::invalid_argument, "{} cepstral coefficients of {} filters are impossible: expected 1 to {}", s.coefficients,
         s.bins, s.bins);
  }
  const Banks b = banks_of(samples, s);
  const std::vector<double> matrix = cepstral_matrix(s);
  const auto bins = static_cast<std::size_t>(s.bins), coefficients = static_cast<std::size_t>(s.coefficients);
  Features f{s.coefficients, std::vector<float>(b.energies.size() * coefficients)};
  for (std::size_t i = 0; i < b.energies.size(); ++i) {
    for (std::size_t k = 0; k < coefficients; ++k) {
      double sum = 0;
      for (std::size_t m = 0; m < bins; ++m) sum += matrix[k * bins + m] * static_cast<double>(b.logs.values[i * bins + m]);
      f.values[i * coefficients + k] = static_cast<float>(sum);
    }
    if (s.use_energy) f.values[i * coefficients] = static_cast<float>(b.energies[i]);
  }
  return f;
}

}  // namespace sdx::speech
