#pragma once
// Depthwise convolutions of bytes with kernels other than 3x3; internal to this folder.
//
// As in quant_depthwise3_simd.h, image rows become pairs of int16, (upper, lower) for each channel. Here a ring of such pairs
// moves along with the output row: three pairs for 5x5 taps. At stride 1, the first tap alternates between the two rows of a pair
// with each output row, so weights are arranged for both.

#include <cstdint>

#include "kernels/cpu/conv/int8/depthwise/quant_depthwise3_simd.h"

namespace sdx::cpu {

constexpr std::int64_t kMostDepthwiseTaps = 7;          // of an axis
constexpr std::int64_t kDepthwiseAnyBytes = 28 * 1024;  // the ring and the sums of part of a row; d.pairs has room for them
// The number of output columns that fit; if less than 4, the kernel does not support the shape.
inline std::int64_t qdepthwise_any_columns(const ConvShape& s) {
  const std::int64_t ring = (s.kernel[1] / 2 + 1) * 64, reach = (s.kernel[2] - 1) * s.dilation[2] + 1;
  return (kDepthwiseAnyBytes - ring * reach) / (ring * s.stride[2] + 64);
}
QDepthwise3Kernel qdepthwise_any_kernel();

}  // namespace sdx::cpu
