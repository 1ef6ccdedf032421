#pragma once
// Finds the constant matrices that nodes of a graph, and of its subgraphs, multiply by or gather from.

#include <cstdint>
#include <string>

#include "graph/graph.h"

namespace sdx::quantize {

// A graph and those around it, from the innermost outwards.
struct Scope {
  Graph* graph = nullptr;
  Scope* parent = nullptr;
  Subgraph* link = nullptr;  // what makes `graph` part of a node of the parent's; null for the main graph
};

// A constant in the graph that owns it.
struct OwnedConstant {
  Scope* scope = nullptr;
  ValueId value = kNoValue;
  const Tensor* tensor = nullptr;  // null: the value is not a constant
};

// Follows captures outwards, and Identity and Constant nodes to their source.
OwnedConstant constant_in(Scope& scope, ValueId value);

// Returns `value` of `owner`, which is `scope` or a graph around it, as a value of `scope`: by captures, which are shared.
ValueId value_in(Scope& scope, Scope& owner, ValueId value);

// A node whose constant operand may be quantised. The matrix is [k, n] as MatMul takes it; where `transposed`, the tensor is [n,
// k].
struct Target {
  Scope* scope = nullptr;
  NodeId node = kNoNode;
  OwnedConstant weight;
  bool transposed = false;
  std::int64_t k = 0, n = 0;
};

// Why a node that has the right operator is none; empty: `target` says all about it.
std::string target_of(Scope& scope, NodeId node, Target& target);

}  // namespace sdx::quantize
