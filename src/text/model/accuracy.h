#pragma once
// Precision of activations in products with weights in blocks.

#include "graph/graph.h"

namespace sdx::text {

// Throws Error(invalid_argument) unless the level is from 0 to 4: see LanguageModelOptions::accuracy_level.
void check_accuracy_level(int level);

// Gives all products with weights in blocks this accuracy_level, in subgraphs as well; 0 leaves them as they are.
void set_accuracy_level(Graph& graph, int level);

}  // namespace sdx::text
