#pragma once
// Convolutions in float over NC[D][H]W tensors.
//
// Common contract: dense tensors; x, y, bias and residual need float alignment only, the weights given to pack functions
// none. y must not overlap x; residual (same shape as y) may be y. Thread-safe; the work is split over current_pool(); each
// computing thread keeps scratch as documented in gemm.h plus up to 3 MB. Shapes are trusted: the caller has checked that they
// agree.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/elementwise/elementwise.h"

namespace sdx::cpu {

enum class ConvAlgorithm : std::uint8_t {
  gemm,       // weights [M, K] times patches gathered panel by panel (implicit im2col); 1x1 with stride 1 reads x in place
  depthwise,  // one input channel per group: direct, vectorised along rows
  pixel,      // 1x1 over images of one pixel, as in squeeze-and-excitation: images times weights, packed as right operand
  winograd2,  // F(2x2, 3x3): 3x3, stride 1, no dilation, one group; error below 1e-6 of the output's maximum
  winograd4,  // F(4x4, 3x3): the same; up to 8e-6
};

// The fastest algorithm for a shape, by a count of multiplications. `exact`: only those whose error is that of plain
// summation. The Winograd forms depend on extents and batch only through this choice, not through their packed weights.
ConvAlgorithm conv_choose(const ConvShape& shape, bool exact = false);
bool conv_supports(ConvAlgorithm algorithm, const ConvShape& shape);

// Weights [out_channels, in_channels / groups, kernel...] in the algorithm's order. For gemm and depthwise the packed
// form does not depend on batch, extents, stride, padding or dilation. Valid only under the instruction set it was made for.
std::size_t conv_packed_bytes(ConvAlgorithm algorithm, const ConvShape& shape);
void conv_pack_f32(ConvAlgorithm algorithm, const ConvShape& shape, const void* weights, float* packed);

// y = act(conv(x) + bias[channel] + residual); bias and residual may be null.
void conv_f32(ConvAlgorithm algorithm, const ConvShape& shape, const float* x, const float* packed, const float* bias,
              const float* residual, const UnarySpec& act, float* y);

}  // namespace sdx::cpu
