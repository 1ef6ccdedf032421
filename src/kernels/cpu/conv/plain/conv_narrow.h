#pragma once
// Convolutions with few output positions, in float over NC[D][H]W tensors; contract as in conv.h. Internal to the convolutions.

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/elementwise/elementwise.h"

namespace sdx::cpu {

// Whether conv_narrow() should be used for the shape on this processor.
bool conv_is_narrow(const ConvShape& s);

// Like conv_f32() with ConvAlgorithm::gemm and its packed weights. Output channels fill the vectors instead of positions: a panel
// of 2 vectors of positions would be mostly empty.
void conv_narrow(const ConvShape& s, const float* x, const float* packed, const float* bias, const float* residual,
                 const UnarySpec& act, float* y);

}  // namespace sdx::cpu
