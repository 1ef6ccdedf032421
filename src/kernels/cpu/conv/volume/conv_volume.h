#pragma once
// Convolutions of volumes in float, plane by plane: the depth taps of one plane of outputs read a picture whose channels are
// those of neighbouring planes. A volume is thus a batch of pictures that overlap, for the algorithms of blocked_conv.h.
//
// x, y and residual are plain, NCDHW; contract as in conv.h. Scratch as blocked_conv.h says, and the workspace.

#include <cstddef>

#include "kernels/cpu/conv/blocked/blocked_conv.h"
#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/elementwise/elementwise.h"

namespace sdx::cpu {

// Whether the convolution can be computed in this way, and is worth rearranging x and y: one group, several taps, and enough
// channels for vectors.
bool conv_volume_suits(const ConvShape& shape);
// The fastest algorithm for the pictures of a shape that suits.
BlockedConv conv_volume_choose(const ConvShape& shape);

// Weights [out_channels, in_channels, kd, kh, kw] followed by the bias (null: none). The packed form does not depend on batch,
// extents, stride or padding, but on the instruction set.
std::size_t conv_volume_packed_bytes(BlockedConv algorithm, const ConvShape& shape);
void conv_volume_pack(BlockedConv algorithm, const ConvShape& shape, const void* weights, const float* bias, float* packed);

// y = act(conv(x) + bias + residual); residual may be null. `workspace`: 64-byte aligned, not shared between concurrent calls.
std::size_t conv_volume_workspace_bytes(BlockedConv algorithm, const ConvShape& shape);
void conv_volume_f32(BlockedConv algorithm, const ConvShape& shape, const float* x, const float* packed, const float* residual,
                     const UnarySpec& act, float* y, void* workspace);

}  // namespace sdx::cpu
