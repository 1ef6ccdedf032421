#include "vision/crop/filter.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "vision/crop/geometry.h"

namespace sdx::vision {
namespace {

// The pixels from floor(center - reach) on, those beyond the picture folded onto its edges.
void fold(double center, double scale, int pixels, std::vector<double>& weights, int& first) {
  const double reach = kLobes * scale;
  if (center + reach <= 0 || center - reach >= pixels) {
    first = center < pixels / 2.0 ? 0 : pixels - 1;
    weights.assign(1, 1.0);
    return;
  }
  const int low = static_cast<int>(std::floor(center - reach)), high = static_cast<int>(std::ceil(center + reach));
  first = std::clamp(low, 0, pixels - 1);
  weights.assign(static_cast<std::size_t>(std::clamp(high, 1, pixels) - first), 0.0);
  double sum = 0;
  const LanczosTable& table = LanczosTable::get();
  for (int p = low; p < high; ++p) {
    const double w = table(std::abs(p + 0.5 - center) / scale);
    weights[static_cast<std::size_t>(std::clamp(p, 0, pixels - 1) - first)] += w;
    sum += w;
  }
  for (double& w : weights) w /= sum;
}

}  // namespace

double lanczos(double x) {
  x = std::abs(x);
  if (x >= kLobes) return 0;
  if (x < 1e-8) return 1;
  const double a = std::numbers::pi * x;
  return kLobes * std::sin(a) * std::sin(a / kLobes) / (a * a);
}

Taps make_taps(double start, double length, int to, int from, int reduction) {
  const int pixels = (from - 1) / reduction + 1;
  const double scale = std::max(1.0, length / to / reduction);
  Taps taps;
  taps.low = pixels;
  taps.most = pixels == 1 ? 1 : std::min(pixels, to_int(2 * kLobes * scale, 0, 1 << 20) + 2);
  const auto most = static_cast<std::size_t>(taps.most);
  taps.first.resize(static_cast<std::size_t>(to));
  taps.count.resize(static_cast<std::size_t>(to));
  taps.weight.resize(static_cast<std::size_t>(to) * most);
  std::vector<double> weights;
  for (std::size_t i = 0; i < static_cast<std::size_t>(to); ++i) {
    const double center = (start + (static_cast<double>(i) + 0.5) * length / to) / reduction;
    if (pixels == 1) {
      weights.assign(1, 1.0);
      taps.first[i] = 0;
    } else {
      fold(center, scale, pixels, weights, taps.first[i]);
    }
    taps.count[i] = static_cast<int>(weights.size());
    std::transform(weights.begin(), weights.end(), taps.weight.begin() + static_cast<std::ptrdiff_t>(i * most),
                   [](double w) { return static_cast<float>(w); });
    taps.low = std::min(taps.low, taps.first[i]);
    taps.high = std::max(taps.high, taps.first[i] + taps.count[i]);
  }
  return taps;
}

LanczosTable::LanczosTable() : values_(static_cast<std::size_t>(kLobes * kSteps) + 1) {
  for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = lanczos(static_cast<double>(i) / kSteps);
}

const LanczosTable& LanczosTable::get() {
  static const LanczosTable table;
  return table;
}

}  // namespace sdx::vision
