#include "runner/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sdx {

double percentile(const std::vector<double>& sorted, double p) {
  if (sorted.empty()) return 0;
  const double at = std::clamp(p, 0.0, 100.0) / 100 * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - static_cast<double>(low));
}

Statistics summarize(std::vector<double> latencies_ms) {
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
  return s;
}

}  // namespace sdx
