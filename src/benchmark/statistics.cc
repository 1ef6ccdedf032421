#include "benchmark/statistics.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "base/splitmix64.h"

namespace sdx::benchmark {
namespace {

std::int64_t outside(std::span<const double> values, double low, double high) {
  return std::count_if(values.begin(), values.end(), [&](double v) { return v < low || v > high; });
}

void count_outliers(Statistics& s, std::span<const double> sorted) {
  if (sorted.size() < 4) return;
  const double q1 = percentile(sorted, 25);
  const double q3 = percentile(sorted, 75);
  s.outliers_iqr = outside(sorted, q1 - 1.5 * (q3 - q1), q3 + 1.5 * (q3 - q1));
  std::vector<double> deviations;
  for (const double v : sorted) deviations.push_back(std::abs(v - s.p50_ms));
  // 1.4826 makes the median absolute deviation of a normal distribution its standard deviation (Iglewicz and Hoaglin 1993).
  const double spread = 3.5 * 1.4826 * median(std::move(deviations));
  if (spread > 0) s.outliers_mad = outside(sorted, s.p50_ms - spread, s.p50_ms + spread);
}

// The number of resamplings that keeps the whole below about 20 million values (0.2 s).
int resamples(std::size_t values) { return static_cast<int>(std::clamp<std::size_t>(20'000'000 / (values + 1), 200, 2000)); }

std::size_t total(const std::vector<std::vector<double>>& blocks) {
  return std::accumulate(blocks.begin(), blocks.end(), std::size_t{0}, [](std::size_t n, const auto& b) { return n + b.size(); });
}

double draw_median(const std::vector<std::vector<double>>& blocks, SplitMix64& random, std::vector<double>& pool) {
  pool.clear();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto& b = blocks[random.below(blocks.size())];
    pool.insert(pool.end(), b.begin(), b.end());
  }
  const auto middle = pool.begin() + static_cast<std::ptrdiff_t>(pool.size() / 2);
  std::nth_element(pool.begin(), middle, pool.end());
  if (pool.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(pool.begin(), middle)) / 2;
}

Interval central(std::vector<double> draws) {
  std::sort(draws.begin(), draws.end());
  return {percentile(draws, 2.5), percentile(draws, 97.5)};
}

// P(U <= u) for samples of n and m without ties, by counting arrangements (Mann and Whitney 1947).
double exact_cumulative(std::size_t n, std::size_t m, double u) {
  // counts[j][k]: arrangements of i values of one sample and j of the other with statistic k.
  std::vector<std::vector<double>> counts(m + 1, std::vector<double>(n * m + 1, 0));
  for (std::size_t j = 0; j <= m; ++j) counts[j][0] = 1;
  for (std::size_t i = 1; i <= n; ++i) {
    for (std::size_t j = 1; j <= m; ++j) {
      // The largest value is of the first sample (then it beats all j) or of the second. Row j still holds i - 1.
      std::vector<double> next(n * m + 1, 0);
      for (std::size_t k = 0; k <= i * j; ++k) next[k] = (k >= j ? counts[j][k - j] : 0) + counts[j - 1][k];
      counts[j] = std::move(next);
    }
  }
  const auto& row = counts[m];
  const double all = std::accumulate(row.begin(), row.end(), 0.0);
  double below = 0;
  for (std::size_t k = 0; k <= static_cast<std::size_t>(std::floor(u)) && k < row.size(); ++k) below += row[k];
  return below / all;
}

// Values of both, ascending, and whether each is of `a`.
std::vector<std::pair<double, bool>> in_order(std::span<const double> a, std::span<const double> b) {
  std::vector<std::pair<double, bool>> all;
  for (const double v : a) all.emplace_back(v, true);
  for (const double v : b) all.emplace_back(v, false);
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

double percentile(std::span<const double> sorted, double p) {
  if (sorted.empty()) return 0;
  const double at = std::clamp(p, 0.0, 100.0) / 100 * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - static_cast<double>(low));
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return percentile(values, 50);
}

std::vector<std::vector<double>> blocks(std::span<const double> latencies, std::span<const std::size_t> rounds) {
  constexpr std::size_t kWanted = 10;
  std::vector<std::size_t> lengths;
  std::copy_if(rounds.begin(), rounds.end(), std::back_inserter(lengths), [](std::size_t n) { return n > 0; });
  if (lengths.size() < kFewestForInterval ||
      std::accumulate(lengths.begin(), lengths.end(), std::size_t{0}) != latencies.size()) {
    const std::size_t n = latencies.size();
    const std::size_t count = std::clamp<std::size_t>(n / 2, 1, kWanted);
    lengths.clear();
    for (std::size_t i = 0; i < count; ++i) lengths.push_back(n * (i + 1) / count - n * i / count);
  }
  std::vector<std::vector<double>> out;
  std::size_t at = 0;
  for (const std::size_t n : lengths) {
    const auto part = latencies.subspan(at, n);
    if (!part.empty()) out.emplace_back(part.begin(), part.end());
    at += n;
  }
  return out;
}

Interval median_interval(const std::vector<std::vector<double>>& blocks) {
  if (blocks.empty()) return {};
  SplitMix64 random(0x9E3779B97F4A7C15ULL);
  std::vector<double> draws;
  std::vector<double> pool;
  const int count = resamples(total(blocks));
  for (int i = 0; i < count; ++i) draws.push_back(draw_median(blocks, random, pool));
  return central(std::move(draws));
}

Interval ratio_interval(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b) {
  if (a.empty() || b.empty()) return {};
  SplitMix64 random(0xD1B54A32D192ED03ULL);
  std::vector<double> draws;
  std::vector<double> pool;
  const int count = resamples(total(a) + total(b));
  for (int i = 0; i < count; ++i) {
    const double below = draw_median(a, random, pool);
    const double above = draw_median(b, random, pool);
    if (below > 0) draws.push_back(above / below);
  }
  return central(std::move(draws));
}

MannWhitney mann_whitney(std::span<const double> a, std::span<const double> b) {
  MannWhitney result;
  if (a.empty() || b.empty()) return result;
  const std::vector<std::pair<double, bool>> all = in_order(a, b);
  double rank_sum = 0;
  double ties = 0;  // sum of t^3 - t over groups of equal values
  for (std::size_t i = 0; i < all.size();) {
    std::size_t j = i;
    while (j < all.size() && all[j].first == all[i].first) ++j;
    const double rank = static_cast<double>(i + 1 + j) / 2;
    const auto t = static_cast<double>(j - i);
    ties += t * t * t - t;
    for (; i < j; ++i) rank_sum += all[i].second ? rank : 0;
  }
  const auto n = static_cast<double>(a.size());
  const auto m = static_cast<double>(b.size());
  result.u = rank_sum - n * (n + 1) / 2;
  const double smaller = std::min(result.u, n * m - result.u);
  if (ties == 0 && a.size() <= 20 && b.size() <= 20) {
    result.p = std::min(1.0, 2 * exact_cumulative(a.size(), b.size(), smaller));
    return result;
  }
  const double variance = n * m / 12 * (n + m + 1 - ties / ((n + m) * (n + m - 1)));
  if (variance <= 0) return result;
  const double z = (std::abs(result.u - n * m / 2) - 0.5) / std::sqrt(variance);
  result.p = std::min(1.0, std::erfc(z / std::sqrt(2.0)));
  return result;
}

namespace {

// The statistic U for the lowest values of two samples. `ascending` holds all values, and `in_a` marks those of the first sample.
class LowestU {
 public:
  // Six a side: were fewer apart completely, samples of twenty would hardly reach a p of 0.05.
  LowestU(std::size_t size_a, std::size_t size_b) : most_a_(most(size_a)), most_b_(most(size_b)) {}

  double operator()(std::span<const double> ascending, const std::vector<char>& in_a) {
    a_.clear();
    b_.clear();
    for (std::size_t i = 0; i < ascending.size(); ++i) {
      if (in_a[i] != 0 && a_.size() < most_a_) a_.push_back(ascending[i]);
      if (in_a[i] == 0 && b_.size() < most_b_) b_.push_back(ascending[i]);
    }
    double u = 0;
    for (const double x : a_) {
      for (const double y : b_) u += x < y ? 0 : x > y ? 1 : 0.5;
    }
    return u;
  }
  double expected() const { return static_cast<double>(most_a_ * most_b_) / 2; }

 private:
  static std::size_t most(std::size_t n) { return std::min(n, std::max<std::size_t>(6, n / 3)); }

  std::size_t most_a_, most_b_;
  std::vector<double> a_, b_;
};

}  // namespace

MannWhitney mann_whitney_of_lowest(std::span<const double> a, std::span<const double> b) {
  MannWhitney result;
  if (a.empty() || b.empty()) return result;
  const std::vector<std::pair<double, bool>> all = in_order(a, b);
  std::vector<double> ascending;
  std::vector<char> in_a;
  for (const auto& [value, first] : all) {
    ascending.push_back(value);
    in_a.push_back(first ? 1 : 0);
  }
  LowestU u(a.size(), b.size());
  result.u = u(ascending, in_a);
  constexpr int kDivisions = 4000;
  SplitMix64 random(1);
  int as_far = 0;
  for (int i = 0; i < kDivisions; ++i) {
    for (std::size_t j = in_a.size() - 1; j > 0; --j) std::swap(in_a[j], in_a[random.below(j + 1)]);
    as_far += std::abs(u(ascending, in_a) - u.expected()) >= std::abs(result.u - u.expected()) ? 1 : 0;
  }
  result.p = (as_far + 1.0) / (kDivisions + 1.0);
  return result;
}

double second_lowest(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + 1, values.end());
  return values[1];
}

Interval fastest_interval(std::span<const double> a, std::span<const double> b) {
  constexpr int kDraws = 2000;
  SplitMix64 random(1);
  const auto draw = [&](std::span<const double> from) {
    std::vector<double> out(from.size());
    for (double& v : out) v = from[random.below(from.size())];
    return second_lowest(std::move(out));
  };
  std::vector<double> ratios;
  for (int i = 0; i < kDraws; ++i) {
    const double base = draw(a);
    ratios.push_back(draw(b) / base);
  }
  return central(std::move(ratios));
}

std::vector<std::size_t> lengths_by(const std::vector<IterationRecord>& iterations, int IterationRecord::*field) {
  std::vector<std::size_t> lengths;
  int last = -1;
  for (const IterationRecord& i : iterations) {
    if (i.warmup) continue;
    if (i.*field != last) lengths.push_back(0);
    last = i.*field;
    ++lengths.back();
  }
  return lengths;
}

double student_95(double freedom) {
  // Exact to 0.1 % between the entries by interpolating over 1 / freedom.
  static constexpr double kAt[] = {1, 2, 3, 4, 5, 6, 8, 10, 15, 30, 120};
  static constexpr double kValue[] = {12.706, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3060, 2.2281, 2.1314, 2.0423, 1.9799};
  constexpr std::size_t kEntries = std::size(kAt);
  const double f = std::max(freedom, kAt[0]);
  std::size_t i = 0;
  while (i + 2 < kEntries && f > kAt[i + 1]) ++i;
  if (f > kAt[kEntries - 1]) return 1.96 + (kValue[kEntries - 1] - 1.96) * kAt[kEntries - 1] / f;
  const double x = (1 / f - 1 / kAt[i]) / (1 / kAt[i + 1] - 1 / kAt[i]);
  return kValue[i] + x * (kValue[i + 1] - kValue[i]);
}

LogChange log_change(std::span<const double> a, std::span<const double> b, double floor) {
  struct Side {
    double mean = 0, error2 = 0, freedom = 1;  // error2: squared standard error of the mean
  };
  const auto side_of = [](std::span<const double> values) {
    Side s;
    const auto n = static_cast<double>(values.size());
    for (const double v : values) s.mean += std::log(v) / n;
    for (const double v : values) s.error2 += std::pow(std::log(v) - s.mean, 2) / (n - 1) / n;
    s.freedom = n - 1;
    return s;
  };
  if (a.size() < 2 || b.size() < 2) return {};
  const Side x = side_of(a);
  const Side y = side_of(b);
  const double own = x.error2 + y.error2;
  // Welch and Satterthwaite.
  const double freedom = own > 0 ? own * own / (x.error2 * x.error2 / x.freedom + y.error2 * y.error2 / y.freedom) : 1e9;
  const double half = std::sqrt(own * std::pow(student_95(freedom), 2) + std::pow(1.96 * floor, 2));
  const double change = y.mean - x.mean;
  return {change, change - half, change + half};
}

bool has_interval(const Statistics& s) { return s.median_high_ms > 0; }

Statistics summarize(std::vector<double> latencies_ms, std::span<const std::size_t> rounds,
                     std::span<const std::size_t> processes) {
  Statistics s;
  s.latencies_ms = std::move(latencies_ms);
  if (s.latencies_ms.empty()) return s;
  std::vector<double> sorted = s.latencies_ms;
  std::sort(sorted.begin(), sorted.end());
  const auto n = static_cast<double>(sorted.size());
  s.mean_ms = std::accumulate(sorted.begin(), sorted.end(), 0.0) / n;
  double squares = 0;
  for (const double v : sorted) squares += (v - s.mean_ms) * (v - s.mean_ms);
  s.std_ms = sorted.size() > 1 ? std::sqrt(squares / (n - 1)) : 0;
  s.min_ms = sorted.front();
  s.max_ms = sorted.back();
  s.p50_ms = percentile(sorted, 50);
  s.p90_ms = percentile(sorted, 90);
  s.p95_ms = percentile(sorted, 95);
  s.p99_ms = percentile(sorted, 99);
  s.coefficient_of_variation = s.mean_ms > 0 ? s.std_ms / s.mean_ms : 0;
  count_outliers(s, sorted);
  const auto parts = blocks(s.latencies_ms, rounds);
  const auto independent = processes.size() >= kFewestForInterval ? blocks(s.latencies_ms, processes) : parts;
  if (independent.size() >= kFewestForInterval) {
    const Interval interval = median_interval(independent);
    s.median_low_ms = interval.low;
    s.median_high_ms = interval.high;
  }
  for (const auto& part : parts) s.round_medians_ms.push_back(median(part));
  return s;
}

}  // namespace sdx::benchmark
