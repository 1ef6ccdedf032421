#pragma once
// Gemm and the operators that add an activation to it.

#include "ops/context.h"

namespace sdx::ops {

void infer_gemm(InferContext& c);
// Y = alpha * A' B' + beta * C. Returns Y, which is output 0.
Tensor& run_gemm(OpContext& c);

}  // namespace sdx::ops
