#pragma once
// The operators that fuse_chains() can join.

#include <optional>

#include "graph/graph.h"
#include "kernels/cpu/elementwise/chain.h"

namespace sdx::cpu {

// The function of a node, where a vector kernel computes it on operands of constant shapes. `operand` only tells the order:
// operand[0] == 1 where the function's first operand is the node's second input.
std::optional<ChainStep> chain_step(const Graph& graph, NodeId id);

struct ChainFold {
  Reduce op;
  std::int64_t row;  // elements of which each result is made
};

// The same for a reduction of float32 over the last axes.
std::optional<ChainFold> chain_fold(const Graph& graph, NodeId id);

}  // namespace sdx::cpu
