#pragma once
// Pointwise convolutions with lists of input channels; internal to this folder.

#include <cstddef>

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/elementwise/elementwise.h"

namespace sdx::cpu {

std::size_t blocked_listed_floats(const ConvShape& shape);
void blocked_listed_pack(const ConvShape& shape, const void* weights, const float* bias, float* packed);
void conv_blocked_listed(const ConvShape& shape, const float* x, const float* packed, const float* residual, const UnarySpec& act,
                         float* y);

}  // namespace sdx::cpu
