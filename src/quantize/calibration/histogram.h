#pragma once
// The observed values of a tensor, and the range that it gets.

#include <cstdint>
#include <limits>
#include <sdx/quantize.hpp>
#include <span>
#include <vector>

#include "quantize/numbers/params.h"

namespace sdx::quantize {

// Extremes over all batches. NaN is ignored; infinities count as the largest floats.
class Extremes {
 public:
  // `smoothing`: the least weight of the newest batch in an average of the batches' extremes; absent: extremes of all.
  void add(std::span<const float> values, std::optional<double> smoothing);
  bool seen() const { return batches_ > 0; }
  Range range() const { return seen() ? range_ : Range{}; }

 private:
  Range range_;
  std::int64_t batches_ = 0;
};

// Counts in bins of one width around 0.
class Histogram {
 public:
  // `bins` on each side of 0, up to the larger end of the range.
  Histogram(Range range, int bins);
  void add(std::span<const float> values);

  Range range() const { return range_; }
  double width() const { return width_; }
  int half() const { return half_; }                             // bins on each side
  const std::vector<double>& counts() const { return counts_; }  // 2 * half() of them, lowest first; zeros are not counted
  double middle(std::size_t bin) const { return (static_cast<double>(bin) + 0.5 - half_) * width_; }
  double zeros() const { return zeros_; }

 private:
  Range range_;
  double width_ = 0, zeros_ = 0;
  int half_ = 0;
  std::vector<double> counts_;
};

// Each a part of the histogram's range.
// A share of (100 - percentile) % is beyond the ends; of both sides half of it, of one side all where the other has nothing.
Range percentile_range(const Histogram& h, double percentile);
// The range for which the distribution of the values in `groups` groups differs least from their own (Kullback-Leibler).
// Candidates are ranges whose squared error with `codes` steps, with cut values counted several times, is no larger than that of
// the whole range.
Range entropy_range(const Histogram& h, int groups, double codes, bool symmetric);
// The range with the least mean square error of cutting off and rounding, with `codes` steps.
Range mse_range(const Histogram& h, double codes, bool symmetric);
// Five standard deviations about the mean.
Range distribution_range(const Histogram& h);
double standard_deviation(const Histogram& h);

}  // namespace sdx::quantize
