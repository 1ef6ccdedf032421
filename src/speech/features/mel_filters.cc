#include "speech/features/mel_filters.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace sdx::speech {
namespace {

constexpr double kSlaneyStep = 200.0 / 3, kSlaneyKnee = 1000;  // Hz for a mel, where the logarithm begins
double slaney_log_step() { return std::log(6.4) / 27; }

double to_mel(MelScale scale, double hertz) {
  switch (scale) {
    case MelScale::htk: return 2595 * std::log10(1 + hertz / 700);
    case MelScale::kaldi: return 1127 * std::log(1 + hertz / 700);
    case MelScale::slaney: break;
  }
  if (hertz < kSlaneyKnee) return hertz / kSlaneyStep;
  return kSlaneyKnee / kSlaneyStep + std::log(hertz / kSlaneyKnee) / slaney_log_step();
}

double to_hertz(MelScale scale, double mel) {
  switch (scale) {
    case MelScale::htk: return 700 * (std::pow(10.0, mel / 2595) - 1);
    case MelScale::kaldi: return 700 * (std::exp(mel / 1127) - 1);
    case MelScale::slaney: break;
  }
  constexpr double kKnee = kSlaneyKnee / kSlaneyStep;
  return mel < kKnee ? mel * kSlaneyStep : kSlaneyKnee * std::exp(slaney_log_step() * (mel - kKnee));
}

// Corners in Hz.
template <class Frequency>
MelFilter triangle(double left, double middle, double right, double height, std::int64_t bins, const Frequency& frequency) {
  MelFilter f;
  for (std::int64_t k = 0; k < bins; ++k) {
    const double at = frequency(k);
    const double weight = std::min((at - left) / (middle - left), (right - at) / (right - middle));
    if (!(weight > 0)) continue;
    if (f.weights.empty()) f.first = k;
    f.weights.resize(static_cast<std::size_t>(k - f.first + 1), 0.0);
    f.weights.back() = weight * height;
  }
  return f;
}

// In float32, as Kaldi computes them: where a frequency lies at a triangle's corner, rounding decides about the weight.
std::vector<MelFilter> kaldi_filters(const MelSettings& s, std::int64_t fft, double rate) {
  const auto mel = [](float hertz) { return 1127.0F * std::log(1.0F + hertz / 700.0F); };
  const float width = static_cast<float>(rate) / static_cast<float>(fft), low = mel(static_cast<float>(s.low));
  const float step = (mel(static_cast<float>(s.high)) - low) / static_cast<float>(s.bins + 1);
  std::vector<MelFilter> filters;
  for (std::int64_t m = 0; m < s.bins; ++m) {
    const auto corner = [&](std::int64_t i) { return low + static_cast<float>(m + i) * step; };
    const float left = corner(0), middle = corner(1), right = corner(2);
    MelFilter f;
    for (std::int64_t k = 0; k < fft / 2; ++k) {  // Kaldi leaves the last bin out
      const float at = mel(width * static_cast<float>(k));
      if (!(at > left && at < right)) continue;
      if (f.weights.empty()) f.first = k;
      f.weights.push_back(static_cast<double>(at <= middle ? (at - left) / (middle - left) : (right - at) / (right - middle)));
    }
    filters.push_back(std::move(f));
  }
  return filters;
}

}  // namespace

std::vector<MelFilter> mel_filters(const MelSettings& s, std::int64_t fft, double rate) {
  if (s.bins < 1 || s.bins > 1024 || !(s.low >= 0) || !(s.high > s.low) || !(s.high <= rate / 2)) {
    fail(ErrorCode::invalid_argument,
         "{} mel filters from {} to {} Hz are impossible at {} samples a second; expected 1 to 1024 between 0 and half that rate",
         s.bins, s.low, s.high, rate);
  }
  if (s.scale == MelScale::kaldi) return kaldi_filters(s, fft, rate);
  const double low = to_mel(s.scale, s.low), step = (to_mel(s.scale, s.high) - low) / static_cast<double>(s.bins + 1);
  const auto hertz = [&](std::int64_t k) { return static_cast<double>(k) * rate / static_cast<double>(fft); };
  std::vector<MelFilter> filters;
  for (std::int64_t m = 0; m < s.bins; ++m) {
    const double left = low + static_cast<double>(m) * step;
    const double a = to_hertz(s.scale, left), b = to_hertz(s.scale, left + step), c = to_hertz(s.scale, left + 2 * step);
    filters.push_back(triangle(a, b, c, s.equal_area ? 2 / (c - a) : 1, fft / 2 + 1, hertz));
  }
  return filters;
}

}  // namespace sdx::speech
