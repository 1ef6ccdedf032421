#pragma once
// Runs a graph node by node with the reference kernels: no planning, no rewriting, no reuse of memory. Slow and plain on
// purpose, as an independent second opinion on what a session computes.

#include <vector>

#include "base/cancel.h"
#include "graph/graph.h"

namespace sdx::testing {

struct InterpreterOptions {
  StopCondition stop;
  std::uint64_t seed = 1;
  bool check_nodes = true;  // ops::check_node() before each node
};

// `inputs` in the order of graph.inputs(); an empty Value stands for an input's default, or for an empty optional. The graph must
// have been inferred (ops::infer_in_place). Throws Error naming the node.
std::vector<Value> interpret(const Graph& graph, std::vector<Value> inputs, const InterpreterOptions& options = {});

}  // namespace sdx::testing
