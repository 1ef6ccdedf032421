#pragma once
// Transposed convolutions by Winograd's tiles; contract as in conv_transpose.h.
//
// Where windows are twice as long as the strides, and results as many times the input, every phase of the results is a 3x3
// convolution of the input with some taps of 0. All phases together are one such convolution over blocked channels, with 36
// products for 16 results instead of 64.

#include <cstddef>

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/elementwise/elementwise.h"

namespace sdx::cpu {

bool conv_transpose_suits_tiles(const ConvShape& shape);
std::size_t conv_transpose_tiles_packed_bytes(const ConvShape& shape);
void conv_transpose_tiles_pack_f32(const ConvShape& shape, const void* weights, float* packed);
std::size_t conv_transpose_tiles_workspace_bytes(const ConvShape& shape);
void conv_transpose_tiles_f32(const ConvShape& shape, const float* x, const float* packed, const float* bias,
                              const UnarySpec& act, float* y, void* workspace);

}  // namespace sdx::cpu
