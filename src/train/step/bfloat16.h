#pragma once
// Mixed precision: products of matrices whose operands are rounded to bfloat16 and whose sums are float32.

#include "graph/graph.h"

namespace sdx::train {

// Whether this machine multiplies bfloat16 faster than float32.
bool has_bfloat16_products();

// Products that are worth it take operands rounded to bfloat16: Gemm, FusedGemm, and MatMul and FusedMatMul by
// a matrix. The graph has constant
// shapes, inferred types and nodes in order, and is left so.
void use_bfloat16(Graph& graph);

}  // namespace sdx::train
