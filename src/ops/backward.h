#pragma once
// Reverse accumulation within one graph, for gradients of operators that have graphs.

#include <functional>
#include <vector>

#include "graph/graph.h"

namespace sdx::ops {

// A value and the gradient that flows back into it.
struct Seed {
  ValueId value = kNoValue;
  ValueId gradient = kNoValue;
};

// Appends the nodes that lead the seeds' gradients back to `xs`, and returns the gradients of these; kNoValue where no seed
// depends on one. The graph's nodes are in order and their types inferred. Beyond xs nothing is differentiated. `fused` as in
// GradientContext. Throws Error(not_implemented) naming the node that has no gradient.
std::vector<ValueId> append_backward(Graph& graph, const std::vector<Seed>& seeds, const std::vector<ValueId>& xs, bool fused);

// For each value, whether it has derivatives by xs.
std::vector<bool> depend_on(const Graph& graph, const std::vector<ValueId>& xs);
// For each value, whether one of `values` is computed from it.
std::vector<bool> needed_for(const Graph& graph, const std::vector<ValueId>& values);

// A tensor of floats, a sequence of such, or a value that may be one.
bool has_derivative(const Type& type);

// One node of ai.onnx; returns its only output.
ValueId append_node(Graph& graph, const char* op, std::vector<ValueId> inputs);
// Zeros of the type and shape of `v`, which may be a sequence.
ValueId append_zeros(Graph& graph, ValueId v);
// The sum of two gradients of one value, which may be sequences.
ValueId append_sum(Graph& graph, ValueId a, ValueId b, const Type& type);

// SequenceMap over sequences of tensors of `elem`: of each item what `fill` appends to the body for the inner values that it
// gets.
ValueId append_map(Graph& graph, const std::vector<ValueId>& sequences, DataType elem,
                   const std::function<ValueId(Graph&, const std::vector<ValueId>&)>& fill);

}  // namespace sdx::ops
