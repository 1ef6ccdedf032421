#pragma once
// A model's constant matrices in few bits.

#include <sdx/quantize_weights.hpp>

#include "graph/graph.h"

namespace sdx::quantize {

// Throws Error(invalid_argument) for options that contradict each other.
void check(const WeightOnlyOptions& options);

// `model`: functions inlined, types inferred; they must be inferred again afterwards. Opsets and IR version are raised as the
// result requires. Fills in the report's facts about nodes.
void to_weight_only(Model& model, const WeightOnlyOptions& options, CalibrationDataReader* data, WeightOnlyReport& report);

}  // namespace sdx::quantize
