#pragma once
// Depthwise convolutions over blocked channels; internal to this folder.

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/elementwise/elementwise.h"

namespace sdx::cpu {

void conv_blocked_depthwise(const ConvShape& shape, const float* x, const float* packed, const float* residual,
                            const UnarySpec& act, float* y);

}  // namespace sdx::cpu
