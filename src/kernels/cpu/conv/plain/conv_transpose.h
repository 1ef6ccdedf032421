#pragma once
// Transposed convolutions in float over NC[D][H]W tensors; contract as in conv.h.

#include <cstddef>

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/elementwise/elementwise.h"

namespace sdx::cpu {

// `shape` describes the tensors as given: in = x's extents, out = y's, channels likewise; `pad` is what
// is cut off at the beginning of y. weights: [in_channels, out_channels / groups, kernel...].
std::size_t conv_transpose_packed_bytes(const ConvShape& shape);
void conv_transpose_pack_f32(const ConvShape& shape, const void* weights, float* packed);
// Workspace: conv_transpose_workspace_bytes(), 64-byte aligned, not shared between concurrent calls.
std::size_t conv_transpose_workspace_bytes(const ConvShape& shape);
void conv_transpose_f32(const ConvShape& shape, const float* x, const float* packed, const float* bias, const UnarySpec& act,
                        float* y, void* workspace);

}  // namespace sdx::cpu
