#pragma once
// Connected elementwise operators become one step, which reads and writes memory once.

#include <vector>

#include <sdx/tensor.hpp>

#include "base/tools_api.h"
#include "graph/graph.h"
#include "kernels/cpu/elementwise/chain.h"

namespace sdx::cpu {

// The computation of a node "sdx.ElementwiseChain"; held by its Node::custom.
struct ChainOp {
  Chain chain;
  Shape shape;                         // of every step's result
  std::vector<DataType> result_types;  // of the outputs, the folds behind the steps
  std::vector<Shape> fold_shapes;
};

// The ChainOp of such a node; null for others. Valid as long as the node.
SDX_TOOLS_API const ChainOp* chain_of(const Node& node);

// Pass: joins operators of constant shapes for which there are vector kernels, and reductions of their results over the last
// axes. Results stay the same bit for bit. For graphs in which every type is inferred; has no effect on shapes that are not
// constant.
SDX_TOOLS_API bool fuse_chains(Graph& graph);

}  // namespace sdx::cpu
