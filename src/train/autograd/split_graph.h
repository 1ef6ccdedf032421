#pragma once
// Splits a model's graph into the graphs of a forward and a backward program.

#include <vector>

#include "graph/graph.h"

namespace sdx::train {

struct SplitGraphs {
  Graph forward;                         // outputs: those of the graph that was given, then what is kept and no output
  Graph backward;                        // inputs: `from_inputs`, `from_outputs`, what else is kept, then gradients of outputs
  std::vector<std::size_t> from_inputs;  // numbers of inputs that the backward graph reads
  std::vector<std::size_t>
      from_outputs;                  // numbers of outputs of the forward graph that it reads; kept ones lie behind the others
  std::vector<std::size_t> seeded;   // by the last inputs of the backward graph: which output's gradient
  std::vector<std::size_t> results;  // by output of the backward graph: the input whose gradient it is
};

// `graph`: with inferred types and constant shapes. `differentiable`: numbers of outputs with gradients. `wanted`: for each
// input, whether its gradient is wanted.
SplitGraphs split_for_autograd(Graph graph, const std::vector<std::size_t>& differentiable, const std::vector<bool>& wanted);

}  // namespace sdx::train
