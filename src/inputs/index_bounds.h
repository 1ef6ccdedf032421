#pragma once
// Bounds for the values of integer inputs that keep indices and counts in range.

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <sdx/session.hpp>

#include "graph/graph.h"
#include "inputs/random_input.h"

namespace sdx::inputs {

// By input name. Inputs that index nothing of known extent are left out.
using IndexBounds = std::map<std::string, IntegerRange>;

// Follows each integer input through casts, movements of its elements, and arithmetic with constants, also into subgraphs, to the
// operators that take it as indices. Integers called "attention_mask" are 1. The graph's types are inferred.
IndexBounds index_bounds(const Graph& graph);

// The same of a model's file, run with inputs of these shapes. Empty where the model cannot be worked out this way: then opening
// or running it says why.
IndexBounds index_bounds(const std::filesystem::path& model, const SessionOptions& options,
                         const std::vector<std::pair<std::string, Shape>>& shapes);

}  // namespace sdx::inputs
