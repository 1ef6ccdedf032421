#pragma once
// Which nodes stay in float32 whatever their definitions allow; see narrow.h.

#include <string>
#include <vector>

#include "passes/narrow.h"

namespace sdx {

bool is_float32(const Graph& graph, ValueId v);

// "Conv (opset 13) is not defined for bfloat16"
std::string lacks_type(const Node& node, DataType type);

// By NodeId: why the node stays; empty where nothing speaks against the new type.
std::vector<std::string> reasons_to_stay(const Graph& graph, const NarrowOptions& options);

}  // namespace sdx
