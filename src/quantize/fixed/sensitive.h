#pragma once
// Layers that lose too much when they are quantised.

#include <functional>
#include <set>
#include <string>

#include "quantize/accuracy/measure.h"
#include "quantize/fixed/qdq.h"

namespace sdx::quantize {

// Nodes, by name, to leave float so that the loss on all data is at most `most`: as few as a search by halves finds, those with
// the most damage first, each of which was measured on the recorded batches by quantising it alone. Notes them in the report with
// their damage. Throws Error(invalid_argument) where the nodes are not to blame.
std::set<std::string> sensitive_nodes(const Model& prepared, const StaticPlan& plan, const Calibration& calibration,
                                      const Recorded& expected, CalibrationDataReader& data, const StaticQuantOptions& options,
                                      double most, QuantReport& report);

}  // namespace sdx::quantize
