#pragma once
// Measures the differences between a quantised model and the float one.

#include <sdx/quantize.hpp>
#include <vector>

#include "graph/graph.h"
#include "quantize/calibration/observe.h"

namespace sdx::quantize {

// Sums over all elements and batches of two values.
class Difference {
 public:
  void add(const Tensor& expected, const Tensor& received);
  double signal_to_noise() const;  // decibels
  double cosine() const;
  // For values with scores along the last axis: the number of rows, and of those whose largest element is at the same place.
  std::int64_t rows() const { return rows_; }
  std::int64_t agreeing() const { return agreeing_; }

 private:
  double signal_ = 0, noise_ = 0, other_ = 0, product_ = 0;
  std::int64_t rows_ = 0, agreeing_ = 0;
};

// Outputs of a model for all batches of the data, at most `most` (0: no limit).
struct Recorded {
  std::vector<NamedValues> inputs, outputs;
};
Recorded record(const Model& model, CalibrationDataReader& data, const QuantOptions& options, std::int64_t most);

// The loss (QuantAccuracy::loss) of a model whose outputs are those of the recorded one.
QuantAccuracy outputs_against(const Model& model, const Recorded& expected, const QuantOptions& options);

// The same of two models on all data.
QuantAccuracy outputs_between(const Model& model, const Model& quantized, CalibrationDataReader& data,
                              const QuantOptions& options);

// Values inside as well: those of main graphs that both models have by one name.
QuantAccuracy measure(const Model& model, const Model& quantized, CalibrationDataReader& data, const QuantOptions& options,
                      std::int64_t most);

}  // namespace sdx::quantize
