#pragma once
// A new last layer for a model that was trained for something else.

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace sdx::train {

// The last Gemm or MatMul (with the Add behind it) on the way to `scores` gets weights of `classes` columns: uniform between
// -1/sqrt(n) and 1/sqrt(n) for n inputs, the bias zero. They keep their names, which are returned. Softmax behind it stays. Types
// are inferred, and are afterwards. Throws Error(invalid_argument) where there is no such layer, or its weights are not a
// constant.
std::vector<std::string> replace_head(Graph& graph, ValueId scores, std::int64_t classes, std::uint64_t seed);

}  // namespace sdx::train
