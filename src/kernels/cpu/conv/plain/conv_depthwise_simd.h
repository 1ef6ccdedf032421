#pragma once
// Per-target inner loops of conv_depthwise() for square windows of 3, 5 and 7; internal to this folder.

#include <cstdint>

#include "kernels/cpu/elementwise/elementwise.h"

namespace sdx::cpu {

inline constexpr int kDepthwiseTaps = 49;  // at a time

// Rows of outputs of a depthwise convolution by depth x k x k: y[oy * y_step + ox] = act(bias + sum of w[kz, ky, kx] * row of
// slices[kz][offset[kx] + ox * stride]), ox < width; with `add`, to this y is added. The row of tap ky begins at element at + (oy
// * stride + ky) * row_step of its slice.
struct DepthwiseRows {
  int k, stride;  // 3, 5 or 7; 1 or 2
  int depth;      // depth * k * k <= kDepthwiseTaps
  const float* const* slices;
  std::int64_t at, row_step, y_step, width;
  const std::int64_t* offset;
  const float* w;
  float bias;
  UnarySpec act;  // none, relu or clip
  bool add = false;
  // For rows_in_place() alone, to which rows and columns outside the input are zeros:
  std::int64_t first_row = 0, row_gap = 1;  // the row at `at`, which may be negative, and from there to the next tap's
  std::int64_t in_rows = 0, in_columns = 0;
};

struct DepthwiseKernels {
  int rows_at_once;  // with stride 1
  // Reads offset[kx] + ox, so columns are split by the stride's phases. Rows must be readable up to width rounded up to lanes.
  void (*rows)(const DepthwiseRows& of, float* y, std::int64_t rows);
  // Reads the input in place and skips taps outside of it. With stride 2, the offsets of neighbouring taps differ by 1. Null
  // where vectors have no masks.
  void (*rows_in_place)(const DepthwiseRows& of, float* y, std::int64_t rows);
};

const DepthwiseKernels& depthwise_kernels();

}  // namespace sdx::cpu
