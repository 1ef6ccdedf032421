#pragma once
// What a list of run times says.

#include <string>
#include <vector>

namespace sdx {

// Field names are those of the benchmark files; see docs/cli.md.
struct Statistics {
  std::vector<double> latencies_ms;  // in the order measured
  double mean_ms = 0, std_ms = 0, min_ms = 0, max_ms = 0;
  double p50_ms = 0, p90_ms = 0, p95_ms = 0, p99_ms = 0;
  double coefficient_of_variation = 0;  // std / mean
};

// The deviation is that of a sample (n - 1). Percentiles interpolate linearly between the two nearest values, as NumPy's
// default does. All zero for an empty list.
Statistics summarize(std::vector<double> latencies_ms);

// Percentile `p` (0 to 100) of values in ascending order.
double percentile(const std::vector<double>& sorted, double p);

}  // namespace sdx
