#pragma once
// Convolutions and poolings in float over blocked channels: [N, ceil(C / c), H, W, c] with c = channel_block(), where element
// (n, k, y, x) of the plain tensor is at [n, k / c, y, x, k % c]. Vectors then run along channels, and a pointwise convolution
// reads its input in place.
//
// Lanes of the last block beyond C hold anything on entry: no kernel lets them reach another channel. Contract as in conv.h:
// dense tensors with float alignment, y must not overlap x, residual (same shape as y) may be y; thread-safe, split over
// current_pool(). Sums run in the same order whatever the split, so results do not depend on the number of threads.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/elementwise/elementwise.h"

namespace sdx::cpu {

// Channels in a block under cpu_isa(): two vectors or one.
std::int64_t channel_block();

enum class BlockedConv : std::uint8_t {
  direct,     // pixels times output channels in registers; groups need whole blocks of channels on both sides
  plain,      // the same, but x is NC[H]W: for the few channels of a picture. One group
  depthwise,  // one channel per group, as many outputs
  winograd2,  // as in conv.h, and with dilation
  winograd4,
  winograd2_lean,  // with weights in their own size, transformed in each run
  winograd4_lean,
  listed,   // 1x1, stride 1, any groups: each vector of outputs has a list of the input channels that it needs
  strided,  // 3x3 with stride 2: F(4, 2) on even rows and columns, sums on odd ones; weights as winograd4_lean's
};

// The fastest algorithm for a convolution of a blocked tensor, by its cost. Extents and batch decide only between those that
// suit any.
BlockedConv conv_blocked_choose(const ConvShape& shape);

// `shape` has extent 1 along depth. Only `listed` knows ConvShape::shuffle.
bool conv_blocked_supports(BlockedConv algorithm, const ConvShape& shape);
// Weights [out_channels, in_channels / groups, kh, kw] with the bias (null: none) behind them. The packed form depends on neither
// batch, extents, stride, padding nor dilation, but on the instruction set.
std::size_t conv_blocked_packed_bytes(BlockedConv algorithm, const ConvShape& shape);
void conv_blocked_pack(BlockedConv algorithm, const ConvShape& shape, const void* weights, const float* bias, float* packed);
// y = act(conv(x) + bias + residual); residual may be null. Scratch per computing thread: up to 5 MB, or what the input takes
// of one row of outputs or of as many tiles as a register tile has pixels.
void conv_blocked_f32(BlockedConv algorithm, const ConvShape& shape, const float* x, const float* packed, const float* residual,
                      const UnarySpec& act, float* y, void* workspace = nullptr);
// What `workspace` must hold, 64-byte aligned and not shared between concurrent calls; 0 unless windows are dilated.
std::size_t conv_blocked_workspace_bytes(BlockedConv algorithm, const ConvShape& shape);

// Between plain and blocked: x is [batch, channels, plane], y [batch, ceil(channels / c), plane, c], and back. Lanes beyond the
// channels become 0.
void to_blocked_f32(std::int64_t batch, std::int64_t channels, std::int64_t plane, const float* x, float* y);
void from_blocked_f32(std::int64_t batch, std::int64_t channels, std::int64_t plane, const float* x, float* y);

// Poolings as in pool.h; `in_channels` of the shape counts blocks.
void max_pool_blocked_f32(const ConvShape& shape, const float* x, float* y);
void average_pool_blocked_f32(const ConvShape& shape, const std::int64_t (&pad_end)[3], bool count_pad, const float* x, float* y);
// The mean over `plane` > 0 elements: x [images, rows, plane, c], y [images, rows, c].
void mean_blocked_f32(std::int64_t images, std::int64_t rows, std::int64_t plane, const float* x, float* y);
// As lrn_f32 of norm.h: x and y [batch, ceil(channels / c), plane, c]; y must not be x.
void lrn_blocked_f32(const float* x, float* y, std::int64_t batch, std::int64_t channels, std::int64_t plane, std::int64_t size,
                     float alpha, float beta, float bias);

// y[i, r, p, c] = x[i, r, p, c] * s[i, r, c], or + s[r, c]: a factor or a term per channel. In place allowed.
void scale_channels_f32(std::int64_t images, std::int64_t rows, std::int64_t plane, const float* x, const float* s, float* y);
void shift_channels_f32(std::int64_t images, std::int64_t rows, std::int64_t plane, const float* x, const float* s, float* y);

}  // namespace sdx::cpu
