#pragma once
// Running a model to look at the values inside it.

#include <map>
#include <sdx/quantize.hpp>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "quantize/calibration/histogram.h"

namespace sdx::quantize {

// A model whose inner values are outputs as well.
class Observed {
 public:
  // `names`: values of the main graph besides the model's own outputs. Throws Error(invalid_argument) for models of more than 2
  // GiB.
  Observed(const Model& model, const std::vector<std::string>& names, const QuantOptions& options);
  // Float values in the order of `names`, then the model's outputs.
  NamedValues run(const NamedValues& inputs) const { return session_.run(inputs); }
  const Session& session() const { return session_; }

 private:
  Session session_;
};

// Ranges of values by name; those that are never seen are missing.
struct Calibration {
  std::map<std::string, Range> ranges;
  std::map<std::string, double> deviations;  // with CalibrationMethod::distribution
  std::int64_t batches = 0;
};

// Runs the model over all data, from their beginning; the methods that need histograms do so twice.
Calibration calibrate(const Model& model, const std::vector<std::string>& names, CalibrationDataReader& data,
                      const StaticQuantOptions& options);

}  // namespace sdx::quantize
