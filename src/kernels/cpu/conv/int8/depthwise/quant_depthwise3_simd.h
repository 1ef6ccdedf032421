#pragma once
// The inner kernel for 3x3 taps of quant_depthwise_plane.cc, for AVX2 and AVX-512; internal to this folder.
//
// Two image rows at a time are widened to pairs of int16, (upper, lower) for each channel, for 16 channels, in a buffer that
// stays in the first-level cache. A multiply-add reads two taps from it, one above the other. Each pair serves the three taps of
// a row and, at stride 1, two output rows: 24 multiply-adds and additions for 16 results, without shuffles.

#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/quant/quant.h"

namespace sdx::cpu {

// The task: 16 channels of output rows [begin, end) of one image.
struct QDepthwise3 {
  const ConvShape* shape = nullptr;
  const std::uint8_t* x = nullptr;  // the image, at the first of the channels
  bool is_signed = false;
  std::int32_t zero = 0;                  // of padding
  const std::int16_t* weights = nullptr;  // at the first channel, [9][weight_step]
  std::int64_t weight_step = 0;
  const QEpilogue* epilogue = nullptr;  // its bias includes the zero point's share; output is bytes
  std::int64_t column = 0;              // the first channel
  std::uint8_t* y = nullptr;            // the result's image, at the first channel
  std::int64_t begin = 0, end = 0;      // begin is even
  std::int16_t* pairs = nullptr;        // [2][(out width - 1) * stride + 3][32], 64-byte aligned
};

using QDepthwise3Kernel = void (*)(const QDepthwise3&);
QDepthwise3Kernel qdepthwise3_kernel();  // null if not compiled

}  // namespace sdx::cpu
