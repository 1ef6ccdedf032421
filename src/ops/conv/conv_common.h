#pragma once
// Conv, ConvTranspose and the operators that add something to them.

#include "ops/context.h"

namespace sdx::ops {

void infer_conv(InferContext& c);
void infer_conv_transpose(InferContext& c);
// Inputs X, W, B. Return Y, which is output 0.
Tensor& run_conv(OpContext& c);
Tensor& run_conv_transpose(OpContext& c);

}  // namespace sdx::ops
