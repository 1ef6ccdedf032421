#include "speech/features/spectrum.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/error.h"
#include "base/parallel.h"
#include "kernels/cpu/fft/fourier.h"

namespace sdx::speech {
namespace {

constexpr std::int64_t kLanes = 16;  // frames that are computed at once

std::vector<double> window_of(const FrameSettings& s) {
  std::vector<double> w(static_cast<std::size_t>(s.length));
  const double turn =
      2 * std::numbers::pi / static_cast<double>(s.window == FrameWindow::hann_periodic ? s.length : s.length - 1);
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double cosine = std::cos(turn * static_cast<double>(i));
    switch (s.window) {
      case FrameWindow::hann_periodic:
      case FrameWindow::hann: w[i] = 0.5 - 0.5 * cosine; break;
      case FrameWindow::hamming: w[i] = 0.54 - 0.46 * cosine; break;
      case FrameWindow::povey: w[i] = std::pow(0.5 - 0.5 * cosine, 0.85); break;
    }
  }
  return w;
}

bool centred(FrameEdges e) { return e == FrameEdges::reflected || e == FrameEdges::silent; }

void check(const FrameSettings& s) {
  constexpr std::int64_t kMost = 1 << 16;
  if (s.length < 2 || s.fft < s.length || s.fft > kMost || s.hop < 1 || s.hop > kMost || s.fft % 2 != 0) {
    fail(ErrorCode::invalid_argument,
         "frames of {} samples, {} apart, in transforms of {} are impossible: expected at least 2 samples in a transform of an "
         "even number up to {}, and steps up to {}",
         s.length, s.hop, s.fft, kMost, kMost);
  }
}

}  // namespace

// Immutable; frames lie side by side: element t of frame v at [t * kLanes + v].
class MelFrames::Transform {
 public:
  Transform(const FrameSettings& s, const MelSettings& mel)
      : settings_(s),
        window_(window_of(s)),
        filters_(mel_filters(mel, s.fft, s.rate)),
        fourier_({.what = cpu::Fourier::half, .n = s.fft, .in = s.fft, .out = s.fft / 2 + 1, .inner = kLanes}, 1) {
    // Windows that are shorter than the transform lie in its middle, where frames are centred.
    offset_ = centred(s.edges) ? (s.fft - s.length) / 2 : 0;
  }

  std::int64_t bins() const { return static_cast<std::int64_t>(filters_.size()); }
  std::int64_t offset() const { return offset_; }

  // Up to kLanes frames, whose samples `read` gives.
  template <class Read>
  void run(std::int64_t frames, const Read& read, double* energies, double* log_energies) const {
    const std::int64_t half = settings_.fft / 2 + 1;
    std::vector<double> frame(static_cast<std::size_t>(settings_.length));
    std::vector<double> signals(static_cast<std::size_t>(settings_.fft * kLanes), 0.0);
    std::vector<double> spectrum(static_cast<std::size_t>(2 * half * kLanes));
    for (std::int64_t v = 0; v < frames; ++v) {
      read(v, std::span(frame));
      log_energies[v] = prepare(frame);
      double* const to = signals.data() + offset_ * kLanes + v;
      for (std::size_t t = 0; t < frame.size(); ++t) to[static_cast<std::int64_t>(t) * kLanes] = frame[t] * window_[t];
    }
    fourier_.run(signals.data(), spectrum.data(), 0, fourier_.count());
    squares(half, spectrum.data());
    for (std::size_t m = 0; m < filters_.size(); ++m) {
      const std::array<double, kLanes> sums = filtered(filters_[m], spectrum.data());
      for (std::int64_t v = 0; v < frames; ++v)
        energies[v * bins() + static_cast<std::int64_t>(m)] = sums[static_cast<std::size_t>(v)];
    }
  }

 private:
  // Returns the logarithm of the frame's energy.
  double prepare(std::vector<double>& frame) const {
    if (settings_.remove_mean) {
      double sum = 0;
      for (const double x : frame) sum += x;
      for (double& x : frame) x -= sum / static_cast<double>(frame.size());
    }
    double energy = 0;
    for (const double x : frame) energy += x * x;
    if (settings_.preemphasis != 0) {
      for (std::size_t t = frame.size() - 1; t > 0; --t) frame[t] -= settings_.preemphasis * frame[t - 1];
      frame[0] -= settings_.preemphasis * frame[0];
    }
    return std::log(std::max(energy, static_cast<double>(std::numeric_limits<float>::epsilon())));
  }

  // Complex numbers become their squared absolute values, in the first half of the place.
  static void squares(std::int64_t half, double* spectrum) {
    for (std::int64_t i = 0; i < half * kLanes; ++i) {
      const double re = spectrum[2 * i], im = spectrum[2 * i + 1];
      spectrum[i] = re * re + im * im;
    }
  }

  static std::array<double, kLanes> filtered(const MelFilter& filter, const double* power) {
    std::array<double, kLanes> sums{};
    const double* row = power + filter.first * kLanes;
    for (const double weight : filter.weights) {
      for (std::size_t v = 0; v < kLanes; ++v) sums[v] += weight * row[v];
      row += kLanes;
    }
    return sums;
  }

  FrameSettings settings_;
  std::vector<double> window_;
  std::vector<MelFilter> filters_;
  cpu::FourierTransform<double, double> fourier_;
  std::int64_t offset_ = 0;
};

MelFrames::MelFrames(const FrameSettings& frames, const MelSettings& mel) : settings_(frames) {
  check(frames);
  transform_ = std::make_unique<const Transform>(frames, mel);
}
MelFrames::~MelFrames() = default;
MelFrames::MelFrames(MelFrames&&) noexcept = default;

std::int64_t MelFrames::count(std::int64_t samples) const {
  if (samples <= 0) return 0;
  switch (settings_.edges) {
    case FrameEdges::inside: return samples < settings_.length ? 0 : 1 + (samples - settings_.length) / settings_.hop;
    case FrameEdges::mirrored: return (samples + settings_.hop / 2) / settings_.hop;
    default: return samples / settings_.hop + 1;
  }
}

// The first sample under the frame's window.
std::int64_t MelFrames::begin(std::int64_t frame) const {
  const std::int64_t at = frame * settings_.hop;
  if (settings_.edges == FrameEdges::inside) return at;
  if (settings_.edges == FrameEdges::mirrored) return at + settings_.hop / 2 - settings_.length / 2;
  return at - settings_.fft / 2 + transform_->offset();
}

// Whether all its samples are there; those before the sound are further on.
bool MelFrames::ready(std::int64_t frame) const {
  const std::int64_t from = begin(frame);
  return from + settings_.length <= received_ && -from < received_;
}

void MelFrames::make(std::int64_t end, const TakeEnergies& take) {
  if (end <= made_) return;
  const std::int64_t frames = end - made_, bins = transform_->bins(), total = received_;
  std::vector<double> energies(static_cast<std::size_t>(frames * bins)), logs(static_cast<std::size_t>(frames));
  const auto at = [&](std::int64_t i) {
    if (i < 0 || i >= total) {
      if (settings_.edges == FrameEdges::silent) return 0.0;
      // A sound that is shorter than what is mirrored is mirrored again.
      const std::int64_t last = settings_.edges == FrameEdges::mirrored ? 2 * total - 1 : 2 * (total - 1);
      const std::int64_t first = settings_.edges == FrameEdges::mirrored ? -1 : 0;
      while (total > 1 && (i < 0 || i >= total)) i = i < 0 ? first - i : last - i;
      if (total == 1) i = 0;
    }
    return held_[static_cast<std::size_t>(i - first_)];
  };
  in_parallel((frames + kLanes - 1) / kLanes, 4, [&](std::int64_t a, std::int64_t b) {
    for (std::int64_t block = a; block < b; ++block) {
      const std::int64_t from = block * kLanes;
      const auto read = [&](std::int64_t v, std::span<double> frame) {
        const std::int64_t start = begin(made_ + from + v);
        for (std::size_t t = 0; t < frame.size(); ++t) frame[t] = at(start + static_cast<std::int64_t>(t));
      };
      transform_->run(std::min(kLanes, frames - from), read, energies.data() + from * bins, logs.data() + from);
    }
  });
  made_ = end;
  // What the next frame needs, and what the sound's end may mirror.
  const std::int64_t needed = std::max<std::int64_t>(0, begin(made_) - settings_.length);
  if (needed > first_) {
    const std::int64_t drop = std::min(needed - first_, static_cast<std::int64_t>(held_.size()));
    held_.erase(held_.begin(), held_.begin() + drop);
    first_ += drop;
  }
  take(energies, logs);
}

void MelFrames::push(std::span<const float> samples, const TakeEnergies& take) {
  held_.reserve(held_.size() + samples.size());
  for (const float s : samples) {
    const double x = static_cast<double>(s) * settings_.scale;
    held_.push_back(x - settings_.sound_preemphasis * last_);
    last_ = x;
  }
  received_ += static_cast<std::int64_t>(samples.size());
  std::int64_t end = made_;
  while (ready(end)) ++end;
  make(end, take);
}

void MelFrames::finish(const TakeEnergies& take) { make(count(received_), take); }

}  // namespace sdx::speech
