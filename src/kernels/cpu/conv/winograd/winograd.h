#pragma once
// Winograd's minimal filtering F(t x t, 3 x 3) for t = 2 and 4 (Lavin & Gray, "Fast Algorithms for Convolutional Neural
// Networks", 2016; points: see winograd-inl.h). Internal to the convolutions: see conv.h.

#include <cstddef>

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/elementwise/elementwise.h"

namespace sdx::cpu {

bool winograd_supports(const ConvShape& shape);
std::size_t winograd_packed_bytes(int t, const ConvShape& shape);
void winograd_pack(int t, const ConvShape& shape, const void* weights, float* packed);
void conv_winograd(int t, const ConvShape& shape, const float* x, const float* packed, const float* bias, const float* residual,
                   const UnarySpec& act, float* y);

}  // namespace sdx::cpu
