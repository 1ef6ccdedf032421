#include "quantize/calibration/histogram.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sdx::quantize {
namespace {

Range inside(const Histogram& h, Range r) {
  return {std::max(h.range().low, std::min(r.low, 0.0)), std::min(h.range().high, std::max(r.high, 0.0))};
}

// Sums of counts, of values and of squares up to each bin: the error of cutting is then a difference.
struct Moments {
  std::vector<double> count, first, second;
  explicit Moments(const Histogram& h) {
    const std::size_t n = h.counts().size();
    count.resize(n + 1);
    first.resize(n + 1);
    second.resize(n + 1);
    for (std::size_t i = 0; i < n; ++i) {
      const double x = h.middle(i), c = h.counts()[i];
      count[i + 1] = count[i] + c;
      first[i + 1] = first[i] + c * x;
      second[i + 1] = second[i] + c * x * x;
    }
  }
  // The sum of (x - at)^2 over bins begin to end.
  double squares(std::size_t begin, std::size_t end, double at) const {
    return (second[end] - second[begin]) - 2 * at * (first[end] - first[begin]) + at * at * (count[end] - count[begin]);
  }
};

// Counts of bins begin to end, in `codes` groups and spread again over those that had any, against the counts with values beyond
// added at the ends.
double divergence(const std::vector<double>& counts, std::size_t begin, std::size_t end, int codes) {
  const std::size_t n = end - begin;
  std::vector<double> p(counts.begin() + static_cast<std::ptrdiff_t>(begin), counts.begin() + static_cast<std::ptrdiff_t>(end));
  std::vector<double> q(n);
  const auto groups = std::min<std::size_t>(static_cast<std::size_t>(codes), n);
  for (std::size_t g = 0; g < groups; ++g) {
    const std::size_t from = g * n / groups, to = (g + 1) * n / groups;
    double sum = 0, filled = 0;
    for (std::size_t i = from; i < to; ++i) {
      sum += p[i];
      filled += p[i] > 0 ? 1 : 0;
    }
    for (std::size_t i = from; i < to; ++i) q[i] = p[i] > 0 ? sum / filled : 0;
  }
  for (std::size_t i = 0; i < begin; ++i) p.front() += counts[i];
  for (std::size_t i = end; i < counts.size(); ++i) p.back() += counts[i];
  const double all_p = std::accumulate(p.begin(), p.end(), 0.0), all_q = std::accumulate(q.begin(), q.end(), 0.0);
  if (all_p <= 0 || all_q <= 0) return std::numeric_limits<double>::infinity();
  constexpr double kLeast = 1e-6;  // where outliers fall on a bin that had nothing
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (p[i] > 0) sum += p[i] / all_p * std::log(p[i] / all_p / std::max(q[i] / all_q, kLeast));
  }
  return sum;
}

// The squared error of the values that the range cuts off, weighted by `cut`, and of rounding the others to the nearest of
// `codes` steps.
double squared_error(const Histogram& h, const Moments& m, Range r, double codes, bool symmetric, double cut = 1) {
  const double half = h.half();
  const auto bin_of = [&](double x) {
    return static_cast<std::size_t>(std::clamp(std::round(x / h.width() + half), 0.0, 2 * half));
  };
  const std::size_t low = bin_of(r.low), high = std::max(bin_of(r.high), low);
  const double step = (symmetric ? 2 * std::max(-r.low, r.high) : r.high - r.low) / codes;
  const double rounded = (m.count[high] - m.count[low]) * step * step / 12;
  return rounded + cut * (m.squares(0, low, r.low) + m.squares(high, h.counts().size(), r.high));
}

}  // namespace

void Extremes::add(std::span<const float> values, std::optional<double> smoothing) {
  float low = std::numeric_limits<float>::max(), high = std::numeric_limits<float>::lowest();
  for (const float v : values) {
    low = v < low ? v : low;
    high = v > high ? v : high;
  }
  if (low > high) return;
  constexpr auto kLargest = static_cast<double>(std::numeric_limits<float>::max());
  const Range now{std::max(static_cast<double>(low), -kLargest), std::min(static_cast<double>(high), kLargest)};
  ++batches_;
  if (batches_ == 1) {
    range_ = now;
  } else if (smoothing) {
    const double share = std::max(*smoothing, 1 / static_cast<double>(batches_));
    range_.low += share * (now.low - range_.low);
    range_.high += share * (now.high - range_.high);
  } else {
    range_ = {std::min(range_.low, now.low), std::max(range_.high, now.high)};
  }
}

Histogram::Histogram(Range range, int bins) : range_{std::min(range.low, 0.0), std::max(range.high, 0.0)}, half_(bins) {
  const double largest = std::max(-range_.low, range_.high);
  width_ = largest > 0 ? largest / bins : 1;
  counts_.resize(static_cast<std::size_t>(bins) * 2);
}

void Histogram::add(std::span<const float> values) {
  const auto scale = static_cast<float>(1 / width_);
  const auto middle = static_cast<float>(half_), last = static_cast<float>(2 * half_ - 1);
  for (const float v : values) {
    if (v == 0) {
      zeros_ += 1;
    } else if (v == v) {
      counts_[static_cast<std::size_t>(std::clamp(std::floor(v * scale + middle), 0.0F, last))] += 1;
    }
  }
}

Range percentile_range(const Histogram& h, double percentile) {
  const std::vector<double>& c = h.counts();
  const double all = std::accumulate(c.begin(), c.end(), h.zeros());
  const bool two_sided = h.range().low < 0 && h.range().high > 0;
  const double cut = all * (100 - percentile) / 100 / (two_sided ? 2 : 1);
  const auto middle = static_cast<std::size_t>(h.half());
  std::size_t low = 0, high = c.size();
  for (double sum = 0; low < middle && sum + c[low] <= cut; ++low) sum += c[low];
  for (double sum = 0; high > middle && sum + c[high - 1] <= cut; --high) sum += c[high - 1];
  const double half = h.half();
  return inside(h, {(static_cast<double>(low) - half) * h.width(), (static_cast<double>(high) - half) * h.width()});
}

Range entropy_range(const Histogram& h, int groups, double codes, bool symmetric) {
  const auto middle = static_cast<std::size_t>(h.half());
  const bool below = h.range().low<0, above = h.range().high> 0;
  const Moments m(h);
  // Few large values hardly change a distribution, but may be essential to a network: a layer norm's outliers, a detector's hits.
  // A narrower range that gains less than this changes every code, and the loss by cutting off exceeds the gain.
  constexpr double kGain = 0.7;
  const double most = squared_error(h, m, h.range(), codes, symmetric) * kGain;
  // Cut values are wrong in one direction, whereas rounding errors average out in the sums of the next layer.
  constexpr double kCut = 16;
  Range best = h.range();
  double least = std::numeric_limits<double>::infinity();
  const std::size_t step = std::max<std::size_t>(1, middle / 128);
  const auto first = std::max<std::size_t>(step, static_cast<std::size_t>(groups) / 2);
  for (std::size_t reach = first; reach <= middle; reach += step) {
    const double end = static_cast<double>(reach) * h.width();
    const Range r = inside(h, {-end, end});
    if (squared_error(h, m, r, codes, symmetric, kCut) > most) continue;
    const double d = divergence(h.counts(), below ? middle - reach : middle, above ? middle + reach : middle + 1, groups);
    if (d < least) {
      least = d;
      best = r;
    }
  }
  return best;
}

Range mse_range(const Histogram& h, double codes, bool symmetric) {
  const Moments m(h);
  const double whole = std::max(-h.range().low, h.range().high);
  Range best = h.range();
  double least = std::numeric_limits<double>::infinity();
  constexpr int kSteps = 64;
  const auto try_range = [&](Range r) {
    const double error = squared_error(h, m, r, codes, symmetric);
    if (error < least) {
      least = error;
      best = r;
    }
  };
  for (int i = kSteps; i > 0; --i) {
    const double high = whole * i / kSteps;
    if (symmetric) {
      try_range(inside(h, {-high, high}));
      continue;
    }
    for (int j = kSteps; j > 0; --j) {
      try_range({std::max(h.range().low, -whole * j / kSteps), std::min(h.range().high, high)});
      if (-h.range().low < whole * (j - 1) / kSteps) j = std::max(1, static_cast<int>(-h.range().low / whole * kSteps) + 2);
      if (h.range().low == 0) break;
    }
  }
  return best;
}

double standard_deviation(const Histogram& h) {
  const Moments m(h);
  const double all = m.count.back() + h.zeros();
  if (all <= 0) return 0;
  const double mean = m.first.back() / all;
  return std::sqrt(std::max(0.0, m.second.back() / all - mean * mean));
}

Range distribution_range(const Histogram& h) {
  const Moments m(h);
  const double all = m.count.back() + h.zeros();
  if (all <= 0) return h.range();
  const double mean = m.first.back() / all, reach = 5 * standard_deviation(h);
  return inside(h, {mean - reach, mean + reach});
}

}  // namespace sdx::quantize
