#pragma once
// The matrices of a layer's experts, in the forms that files have them.

#include <string>

#include "text/model/network/weighted_graph.h"

namespace sdx::text {

// `of`: "blk.0.". Throws Error(invalid_model | not_implemented).
ExpertTensors expert_tensors(WeightedGraph& w, const std::string& of, const ExpertConfig& config, std::int64_t width);

}  // namespace sdx::text
