#pragma once
// Depthwise convolutions by vpdpbusd; internal to this folder.
//
// Of 3x3 taps, four image rows become quads of bytes, one above the other for each channel, in a buffer that stays in the first
// cache. A quad times (w0, w1, w2, 0) is a column of taps of one output row, times (0, w0, w1, w2) of the next: 24 multiply-adds
// for 128 results at stride 1. Unpacking bytes, then words, leaves channels of each 128 bits in the order in which packing the
// sums puts them back.

#include <cstdint>

#include "kernels/cpu/conv/int8/depthwise/quant_depthwise3_simd.h"

namespace sdx::cpu {

// Groups of 16 channels that one call takes: 4, 2 or 1.
using QDepthwiseQuads = void (*)(const QDepthwise3& d);
// Null where the build has none; whether the machine has the instructions is not asked. Weights are in [-128, 127]; bytes count
// as unsigned after their highest bit was turned over where d.is_signed, which the bias has to make good. `pairs` has room for
// kDepthwiseQuadBytes.
QDepthwiseQuads qdepthwise_quads(std::int64_t groups);
constexpr std::int64_t kDepthwiseQuadBytes = 34 * 1024;

// The same of other shapes than 3x3 without dilation, with strides of 1 or 2 along a row (quant_depthwise_any_vnni.cc).
QDepthwiseQuads qdepthwise_any_quads(std::int64_t groups);
constexpr std::int64_t kDepthwiseAnyQuadBytes = 44 * 1024;

}  // namespace sdx::cpu
