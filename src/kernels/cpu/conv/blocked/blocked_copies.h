#pragma once
// Copies of the input that windows read; internal to this folder.

#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"

namespace sdx::cpu {

// Copies the input rows of a band of outputs with their padding: [blocks][rows][width][in_block], zeros outside. `looks`: also
// returns whether they are tame.
bool copy_padded(const ConvShape& s, std::int64_t in_block, std::int64_t blocks, const float* x, std::int64_t first_row,
                 std::int64_t rows, std::int64_t width, bool looks, float* out);

// The pixels that a strided pointwise convolution reads, side by side: [blocks][rows * columns][in_block]. Register tiles may
// then extend over the ends of rows, and whole cache lines are used.
void copy_strided_pixels(const ConvShape& s, std::int64_t in_block, std::int64_t blocks, const float* x, std::int64_t y0,
                         std::int64_t rows, float* out);

}  // namespace sdx::cpu
