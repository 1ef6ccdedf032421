#pragma once
// The per-target inner kernels of depthwise_last.cc; internal to this folder.

#include <cstdint>

namespace sdx::cpu {

// At most 4 neighbouring outputs of a row, with all of their channels. Their windows have the same taps inside the input.
struct LastPixels {
  const float* x = nullptr;                                 // the first such tap of the first output
  std::int64_t row_step = 0, tap_step = 0, pixel_step = 0;  // in x, from tap to tap and from output to output
  const float* w = nullptr;                                 // of that tap
  std::int64_t w_row = 0;                                   // [taps of a row] x channels
  std::int64_t rows = 0, columns = 0;                       // of taps
  std::int64_t channels = 0, count = 0;                     // of outputs
  const float* bias = nullptr;                              // may be null, like the residual
  const float* residual = nullptr;
  float lo = 0, hi = 0;
  float* y = nullptr;
};

struct DepthwiseLastKernels {
  void (*pixels)(const LastPixels& p);
};

const DepthwiseLastKernels& depthwise_last_kernels();

}  // namespace sdx::cpu
