#pragma once
// What a node reads when it runs, against its operator's definition.

#include <span>

#include "ops/op.h"

namespace sdx::ops {

// For nodes that read what the graph does not know the type of: the branches of an If may give different ones. Compares element
// types with what the operator permits, and with each other where they share a type variable. Throws Error(runtime_failure).
void check_values(const OpDef& def, std::span<const Value* const> inputs);

}  // namespace sdx::ops
