#pragma once
// Transposed convolutions whose windows are whole multiples of their strides; contract as in conv_transpose.h.
//
// Results a stride apart are those of an ordinary convolution of stride 1 with every stride-th tap, in reverse order. All phases
// are channels of one such convolution, which are then interleaved: nothing is added up afterwards, and no product is left out.

#include <cstddef>

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/elementwise/elementwise.h"

namespace sdx::cpu {

// Whether shapes with these kernels, strides, dilations and groups have that form, and gain from it.
bool conv_transpose_has_phases(const ConvShape& shape);
std::size_t conv_transpose_phases_packed_bytes(const ConvShape& shape);
void conv_transpose_phases_pack_f32(const ConvShape& shape, const void* weights, float* packed);
std::size_t conv_transpose_phases_workspace_bytes(const ConvShape& shape);
void conv_transpose_phases_f32(const ConvShape& shape, const float* x, const float* packed, const float* bias,
                               const UnarySpec& act, float* y, void* workspace);

}  // namespace sdx::cpu
