#pragma once
// Checks the values that a node reads when it runs against its operator's definition.

#include <span>

#include "ops/op.h"

namespace sdx::ops {

// For nodes whose input types are unknown to the graph, because the branches of an If may give different ones. Compares element
// types with those that the operator permits, and with each other if they share a type variable. Throws Error(runtime_failure).
void check_values(const OpDef& def, std::span<const Value* const> inputs);

}  // namespace sdx::ops
