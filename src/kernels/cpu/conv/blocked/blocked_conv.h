#pragma once
// Convolutions in float over blocked channels; layout and contract as in blocked_layout.h. residual (same shape as y) may be y.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/elementwise/elementwise.h"

namespace sdx::cpu {

enum class BlockedConv : std::uint8_t {
  direct,     // pixels times output channels in registers; groups need whole blocks of channels on both sides
  plain,      // the same, but x is NC[H]W: for the few channels of a picture. One group
  depthwise,  // one channel per group, as many outputs
  winograd2,  // as in conv.h, and with dilation
  winograd4,
  winograd2_lean,  // with weights in their original size, transformed in each run
  winograd4_lean,
  listed,   // 1x1, stride 1, any groups: each vector of outputs has a list of the input channels it needs
  strided,  // 3x3 with stride 2: F(4, 2) on even rows and columns, sums on odd ones; weights as winograd4_lean's
};

// The fastest algorithm for a convolution of a blocked tensor, by estimated cost. Extents and batch decide only among
// algorithms that suit any extents.
BlockedConv conv_blocked_choose(const ConvShape& shape);

// `shape` has extent 1 along depth. Only `listed` supports ConvShape::shuffle.
bool conv_blocked_supports(BlockedConv algorithm, const ConvShape& shape);
// Weights [out_channels, in_channels / groups, kh, kw] followed by the bias (null: none). The packed form does not depend on
// batch, extents, stride, padding or dilation, but on the instruction set.
std::size_t conv_blocked_packed_bytes(BlockedConv algorithm, const ConvShape& shape);
void conv_blocked_pack(BlockedConv algorithm, const ConvShape& shape, const void* weights, const float* bias, float* packed);
// y = act(conv(x) + bias + residual); residual may be null. Scratch per computing thread: up to 5 MB, or the size of the input
// of one row of outputs, or of as many tiles as a register tile has pixels.
void conv_blocked_f32(BlockedConv algorithm, const ConvShape& shape, const float* x, const float* packed, const float* residual,
                      const UnarySpec& act, float* y, void* workspace = nullptr);
// Size of `workspace`, 64-byte aligned and not shared between concurrent calls; 0 unless windows are dilated.
std::size_t conv_blocked_workspace_bytes(BlockedConv algorithm, const ConvShape& shape);

}  // namespace sdx::cpu
