#include "media/sound/resample.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

#include "base/error.h"
#include "base/thread_pool.h"

namespace sdx::media {
namespace {

// Kaiser's formulas: 120 dB need this beta, and a transition of 0.09 of the band 90 crossings to each side.
constexpr double kBeta = 12.27, kCrossings = 90;
constexpr double kMiddle = 0.955;  // of the transition from 0.91 to 1
// Rates whose ratio needs more filters share these, and samples between two of them are interpolated: an error of -130 dB.
constexpr std::int64_t kMostPhases = 2048;
constexpr std::size_t kLanes = 8;

// Modified Bessel function of the first kind, order 0, by its power series.
double bessel_i0(double x) {
  double sum = 1;
  double term = 1;
  for (int k = 1; k < 64 && term > sum * 1e-17; ++k) {
    term *= (x / (2 * k)) * (x / (2 * k));
    sum += term;
  }
  return sum;
}

double windowed_sinc(double t) {
  if (std::abs(t) >= kCrossings) return 0;
  const double ratio = t / kCrossings;
  const double window = bessel_i0(kBeta * std::sqrt(1 - ratio * ratio));
  const double x = std::numbers::pi * kMiddle * t;
  return window * (x == 0 ? 1 : std::sin(x) / x);
}

// A multiple of kLanes values. Sums in lanes are what compilers make vectors of.
float dot(const float* a, const float* b, std::int64_t count) {
  std::array<float, kLanes> sums{};
  for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(kLanes)) {
    for (std::size_t l = 0; l < kLanes; ++l) sums[l] += a[static_cast<std::size_t>(i) + l] * b[static_cast<std::size_t>(i) + l];
  }
  float sum = 0;
  for (const float s : sums) sum += s;
  return sum;
}

void check(int rate) {
  if (rate < kMinRate || rate > kMaxRate) {
    fail(ErrorCode::invalid_argument, "a sample rate of {} is out of range: {} to {}", rate, kMinRate, kMaxRate);
  }
}

}  // namespace

Resampler::Resampler(int from, int to) {
  check(from);
  check(to);
  const int common = std::gcd(from, to);
  up_ = to / common;
  down_ = from / common;
  if (from == to) return;
  const double step = std::min(1.0, static_cast<double>(to) / from);  // crossings of an input sample
  reach_ = static_cast<std::int64_t>(std::ceil(kCrossings / step));
  constexpr auto kRound = static_cast<std::int64_t>(kLanes);
  taps_ = (2 * reach_ + 1 + kRound - 1) / kRound * kRound;
  phases_ = std::min(up_, kMostPhases);
  table_.resize(static_cast<std::size_t>((phases_ + 1) * taps_));
  std::vector<double> filter(static_cast<std::size_t>(taps_));
  for (std::int64_t p = 0; p <= phases_; ++p) {
    const double shift = static_cast<double>(p) / static_cast<double>(phases_);
    for (std::int64_t k = 0; k < taps_; ++k)
      filter[static_cast<std::size_t>(k)] = windowed_sinc((static_cast<double>(k - reach_) - shift) * step);
    const double sum = std::accumulate(filter.begin(), filter.end(), 0.0);
    for (std::int64_t k = 0; k < taps_; ++k)
      table_[static_cast<std::size_t>(p * taps_ + k)] = static_cast<float>(filter[static_cast<std::size_t>(k)] / sum);
  }
}

// The output sample, of which all input is held.
float Resampler::sample(std::int64_t i) const {
  const std::int64_t whole = i / up_ * down_ + i % up_ * down_ / up_, rest = i % up_ * down_ % up_;
  const float* input = held_.data() + (whole - reach_ - first_);
  if (phases_ == up_) return dot(table_.data() + rest * taps_, input, taps_);
  const double place = static_cast<double>(rest) * static_cast<double>(phases_) / static_cast<double>(up_);
  const auto phase = static_cast<std::int64_t>(place);
  const float share = static_cast<float>(place - static_cast<double>(phase));
  const float* filter = table_.data() + phase * taps_;
  return (1 - share) * dot(filter, input, taps_) + share * dot(filter + taps_, input, taps_);
}

// Output samples whose filters end before input sample `end`, which is the end of what is held.
void Resampler::make(std::int64_t end, std::vector<float>& out) {
  const auto whole = [&](std::int64_t i) { return i / up_ * down_ + i % up_ * down_ / up_; };
  std::int64_t last = std::max<std::int64_t>(made_, (end + reach_ - taps_) / down_ * up_);
  while (whole(last) - reach_ + taps_ <= end) ++last;
  while (last > made_ && whole(last - 1) - reach_ + taps_ > end) --last;
  const std::size_t before = out.size();
  out.resize(before + static_cast<std::size_t>(last - made_));
  parallel_for(last - made_, 4096, [&](std::int64_t a, std::int64_t b) {
    for (std::int64_t i = a; i < b; ++i) out[before + static_cast<std::size_t>(i)] = sample(made_ + i);
  });
  made_ = last;
  const std::int64_t unneeded =
      std::clamp<std::int64_t>(whole(made_) - reach_ - first_, 0, static_cast<std::int64_t>(held_.size()));
  held_.erase(held_.begin(), held_.begin() + unneeded);
  first_ += unneeded;
}

void Resampler::push(std::span<const float> samples, std::vector<float>& out) {
  if (up_ == down_) {
    out.insert(out.end(), samples.begin(), samples.end());
    return;
  }
  if (received_ == 0 && held_.empty()) {
    held_.assign(static_cast<std::size_t>(reach_), 0.0F);  // silence before the sound
    first_ = -reach_;
  }
  held_.insert(held_.end(), samples.begin(), samples.end());
  received_ += static_cast<std::int64_t>(samples.size());
  make(received_, out);
}

void Resampler::finish(std::vector<float>& out) {
  if (up_ == down_ || received_ == 0) return;
  const std::int64_t wanted = received_ / down_ * up_ + (received_ % down_ * up_ + down_ - 1) / down_;
  held_.insert(held_.end(), static_cast<std::size_t>(taps_ + down_ / up_ + 1), 0.0F);
  const std::int64_t before = made_;
  const std::size_t size = out.size();
  make(first_ + static_cast<std::int64_t>(held_.size()), out);
  out.resize(size + static_cast<std::size_t>(wanted - before));
  made_ = wanted;
}

std::vector<float> resample(std::span<const float> samples, int from, int to) {
  Resampler resampler(from, to);
  std::vector<float> out;
  // Pieces, so that the input is not copied as a whole.
  constexpr std::size_t kPiece = std::size_t{1} << 18;
  for (std::size_t at = 0; at < samples.size(); at += kPiece) {
    resampler.push(samples.subspan(at, std::min(kPiece, samples.size() - at)), out);
  }
  resampler.finish(out);
  return out;
}

}  // namespace sdx::media
