#pragma once
// Statistics of lists of run times.

#include <span>
#include <vector>

#include <sdx/runner.hpp>

namespace sdx::benchmark {

// The deviation is that of a sample (n - 1). Percentiles interpolate linearly between the two nearest values, as NumPy's
// default does. All zero for an empty list. `rounds` and `processes` are the lengths of the consecutive rounds and processes that
// the times come from; empty: not known. The median's confidence interval is over processes where there are at least 5, else
// over rounds; with fewer than 5 of either (blocks() says how rounds are made up) there is none, and both its ends are 0.
Statistics summarize(std::vector<double> latencies_ms, std::span<const std::size_t> rounds = {},
                     std::span<const std::size_t> processes = {});

// A bootstrap of the median needs some independent values: of fewer than 5 the lowest and the highest enclose the median less
// than 90 % of the time, and of one the interval has no width at all.
inline constexpr std::size_t kFewestForInterval = 5;
// This many runs always suffice, because blocks() makes blocks of two.
inline constexpr std::size_t kRunsForInterval = 2 * kFewestForInterval;
// Whether there were enough runs for the median's confidence interval. Without one, the interval is not shown.
bool has_interval(const Statistics& s);

// The lengths of runs of counted iterations that have the same round (or process).
std::vector<std::size_t> lengths_by(const std::vector<IterationRecord>& iterations, int IterationRecord::*field);

// Percentile `p` (0 to 100) of values in ascending order.
double percentile(std::span<const double> sorted, double p);
double median(std::vector<double> values);

// Divides consecutive times into blocks: the given rounds if there are at least 5, else up to 10 blocks of equal length, none
// shorter than 2. Neighbouring times resemble each other (caches, clock, other processes), so confidence depends on the number of
// blocks, not of times.
std::vector<std::vector<double>> blocks(std::span<const double> latencies, std::span<const std::size_t> rounds);

struct Interval {
  double low = 0, high = 0;
};
// The second lowest value: the time of a program without disturbance, provided that two values are undisturbed. `values` are at
// least two.
double second_lowest(std::vector<double> values);
// 95 % bootstrap interval of (second_lowest of b) / (that of a), values drawn with replacement.
Interval fastest_interval(std::span<const double> a, std::span<const double> b);
// Percentile bootstrap of the median at 95 %: blocks are drawn with replacement. The same for the same data on every machine.
Interval median_interval(const std::vector<std::vector<double>>& blocks);
// The same of (median of b's draw) / (median of a's draw).
Interval ratio_interval(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b);

// Mean and 95 % confidence interval of (mean of ln b) - (mean of ln a), by Welch's t-test (1947). For few independent values,
// since a bootstrap would make too narrow intervals of them. `floor` is a standard error that is added in quadrature. Needs two
// values per side.
struct LogChange {
  double change = 0, low = 0, high = 0;
};
LogChange log_change(std::span<const double> a, std::span<const double> b, double floor);
// The number that Student's t with `freedom` degrees of freedom exceeds in absolute value with a probability of 5 %.
double student_95(double freedom);

struct MannWhitney {
  double u = 0;  // of the first sample
  double p = 1;  // two-sided
};
// Exact for up to 20 values a side without ties, else the normal approximation with corrections for ties and continuity (as
// SciPy's mannwhitneyu). p is 1 where a sample is empty or all values are equal.
MannWhitney mann_whitney(std::span<const double> a, std::span<const double> b);

// The same for the six lowest values of each sample (or a third, if that is more), so that disturbances of the others do not
// count. `u` is that of these; `p` is the share of 4,000 random divisions of all values into two samples whose lowest values
// differ as much. The same data give the same result on every machine.
MannWhitney mann_whitney_of_lowest(std::span<const double> a, std::span<const double> b);

}  // namespace sdx::benchmark
