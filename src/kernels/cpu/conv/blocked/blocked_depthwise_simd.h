#pragma once
// The per-target inner kernels of blocked_depthwise.cc; internal to this folder.

#include <cstdint>

namespace sdx::cpu {

// Rows of outputs of a depthwise convolution with a square window, in one block of channels.
struct DepthwiseBand {
  const float* x = nullptr;  // the plane [in_rows][in_columns][c]
  std::int64_t in_rows = 0, in_columns = 0;
  // In floats: from pixel to pixel in both planes, which is one block of channels if the stride is 2; from row to row of x, of y.
  std::int64_t step = 0, row_step = 0, y_step = 0;
  std::int64_t kernel = 3;  // 3, 5 or 7
  std::int64_t stride = 1;  // 1 or 2
  std::int64_t pad_row = 0, pad_column = 0;
  std::int64_t rows = 0;  // of outputs, from row 0 on
  std::int64_t columns = 0;
  std::int64_t inner_begin = 0, inner_end = 0;  // columns whose windows lie inside the rows
  const float* w = nullptr;                     // [kernel][kernel][c]
  const float* bias = nullptr;
  float lo = 0, hi = 0;
  float* y = nullptr;
};

// One output from any window: taps [rows][columns] at x + i * row_step + j * tap_step, weights at w + i * w_row + j * c.
struct DepthwisePixel {
  const float* x = nullptr;
  std::int64_t rows = 0, columns = 0, row_step = 0, tap_step = 0;
  const float* w = nullptr;
  std::int64_t w_row = 0;
  const float* bias = nullptr;
  float lo = 0, hi = 0;
  float* y = nullptr;
};

struct BlockedDepthwiseKernels {
  void (*band)(const DepthwiseBand& b);
  void (*pixel)(const DepthwisePixel& p);
};

const BlockedDepthwiseKernels& blocked_depthwise_kernels();

}  // namespace sdx::cpu
