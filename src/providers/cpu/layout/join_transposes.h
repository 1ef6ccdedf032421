#pragma once
// Products read transposed matrices where they lie.

#include "graph/graph.h"

namespace sdx::cpu {

// MatMul of float32 whose operand is a Transpose of the last two axes becomes com.microsoft FusedMatMul of that Transpose's
// input: products pack their operands anyway, in either order. Transposes of constants are left to kernels that pack them once.
bool join_transposes(Graph& graph);

}  // namespace sdx::cpu
