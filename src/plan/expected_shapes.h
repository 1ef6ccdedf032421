#pragma once
// The shapes for which a program's kernels were chosen.

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace sdx::plan {

// A kernel may rely on what the graph says of the shapes of its node's inputs and outputs: ranks, fixed extents, and which
// extents are equal. Where values come from subgraphs, sequences or libraries, the graph may be wrong. So every plan, and every
// step whose shapes are settled while it runs, asks this first.
class ExpectedShapes {
 public:
  // Adds these values of `graph`, whose types are inferred: inputs and outputs of a node, or inputs of the graph. They are
  // numbered from 0.
  void add(const Graph& graph, const std::vector<ValueId>& inputs, const std::vector<ValueId>& outputs);

  // Whether these types equal those expected for number `which`. Null types, and types that are not tensors with fixed extents,
  // are not compared.
  bool hold(std::size_t which, std::span<const Type* const> inputs, std::span<const Type* const> outputs) const;

 private:
  // For each value its rank (-1: any), then for each axis an extent, or kAny, or (below kAny) an earlier axis with equal extent.
  std::vector<std::int64_t> facts_;
  std::vector<std::size_t> begins_;
};

}  // namespace sdx::plan
