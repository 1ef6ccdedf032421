#pragma once
// Depthwise convolutions with vpdpbusd; internal to this folder.
//
// For 3x3 taps, four image rows become quads of bytes, one above the other for each channel, in a buffer that stays in the
// first-level cache. A quad times (w0, w1, w2, 0) is a column of taps of one output row; times (0, w0, w1, w2), of the next row:
// 24 multiply-adds for 128 results at stride 1. Unpacking bytes and then words leaves the channels of each 128 bits in an order
// that packing the sums reverses.

#include <cstdint>

#include "kernels/cpu/conv/int8/depthwise/quant_depthwise3_simd.h"

namespace sdx::cpu {

// Groups of 16 channels per call: 4, 2 or 1.
using QDepthwiseQuads = void (*)(const QDepthwise3& d);
// Null if not compiled; does not check whether the machine has the instructions. Weights are in [-128, 127]. If d.is_signed, the
// kernel flips the highest bit of bytes to make them unsigned, and the bias must compensate for that. `pairs` has room for
// kDepthwiseQuadBytes.
QDepthwiseQuads qdepthwise_quads(std::int64_t groups);
constexpr std::int64_t kDepthwiseQuadBytes = 34 * 1024;

// The same for shapes other than 3x3 without dilation, with strides of 1 or 2 along a row (quant_depthwise_any_vnni.cc).
QDepthwiseQuads qdepthwise_any_quads(std::int64_t groups);
constexpr std::int64_t kDepthwiseAnyQuadBytes = 44 * 1024;

}  // namespace sdx::cpu
