#pragma once
// numpy.matmul on tensors: shapes and reference kernel. Source: ONNX MatMul-13.

#include <sdx/tensor.hpp>

#include "base/cancel.h"
#include "graph/dim.h"

namespace sdx::ops {

// The positions of the matrices in a stacked product.
struct MatMulPlan {
  Shape output;  // what the operator returns
  Shape batch;   // broadcast leading extents
  Shape batch_a, batch_b;
  std::int64_t m = 1, n = 1, k = 1;
};

// Throws Error(runtime_failure) naming both shapes. `trans_a` and `trans_b` say that the last two axes are stored swapped (they
// do nothing for rank 1, as in com.microsoft FusedMatMul).
MatMulPlan matmul_plan(const Shape& a, const Shape& b, bool trans_a = false, bool trans_b = false);
// The known part of the product's shape. Throws Error(invalid_model).
SymShape matmul_shape(const SymShape& a, const SymShape& b, bool trans_a = false, bool trans_b = false);

// out = alpha * a x b for float32, float64, float16, bfloat16 and 32- and 64-bit integers (alpha: floats only).
// `out` has plan.output.
void matmul_reference(const MatMulPlan& plan, const Tensor& a, const Tensor& b, Tensor& out, const StopCondition& stop,
                      bool trans_a = false, bool trans_b = false, float alpha = 1.0F);

}  // namespace sdx::ops
