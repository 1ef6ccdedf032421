#pragma once
// Transposed convolutions in float over NC[D][H]W tensors; contract as in conv.h.

#include <cstddef>
#include <cstdint>

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

// For results of whole multiples of the input: `rows` rows of one channel from its phases, [row][column of a window], whose rows
// are as long as the input's and which are `step` floats apart; adds the bias and applies `act`. `sources`: room for one row's
// phases.
void weave_phases(const ConvShape& shape, const float* phases, std::int64_t step, std::int64_t rows, float bias,
                  const UnarySpec& act, float* y, const float** sources);

}  // namespace sdx::cpu
