#pragma once
// Products read transposed matrices where they lie.

#include "graph/graph.h"

namespace sdx::cpu {

// MatMul of float32 whose operand is a Transpose of the last two axes becomes com.microsoft FusedMatMul of what that transposes:
// products pack their operands anyway, in either order. Constants are left to what packs them once.
bool join_transposes(Graph& graph);

}  // namespace sdx::cpu
