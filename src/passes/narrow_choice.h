#pragma once
// Chooses the nodes that stay in float32 although their definitions allow the new type; see narrow.h.

#include <string>
#include <vector>

#include "passes/narrow.h"

namespace sdx {

bool is_float32(const Graph& graph, ValueId v);

// "Conv (opset 13) is not defined for bfloat16"
std::string lacks_type(const Node& node, DataType type);

// By NodeId, the reason why the node stays; empty if it may have the new type.
std::vector<std::string> reasons_to_stay(const Graph& graph, const NarrowOptions& options);

}  // namespace sdx
