#pragma once
// 3x3 convolutions with stride 2 by products of transformed tiles; internal to conv/blocked.

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/elementwise/elementwise.h"

namespace sdx::cpu {

// `packed`: as Winograd's lean weights (blocked_winograd.h).
bool blocked_strided_supports(const ConvShape& shape);
double blocked_strided_cost(const ConvShape& shape);
void conv_blocked_strided(const ConvShape& shape, const float* x, const float* packed, const float* residual,
                          const UnarySpec& act, float* y);

}  // namespace sdx::cpu
