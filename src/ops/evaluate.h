#pragma once
// Running one node outside a session.

#include <span>
#include <vector>

#include <sdx/tensor.hpp>

#include "graph/graph.h"
#include "ops/op.h"

namespace sdx::ops {

// The node's results on known inputs (null: left out; aligned), through its reference kernel; empty Values for outputs that are
// left out. Only for deterministic operators without subgraphs. Throws what the kernel throws.
std::vector<Value> evaluate(const Node& node, const OpDef& def, std::span<const Value* const> inputs);

}  // namespace sdx::ops
