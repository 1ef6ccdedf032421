#pragma once
// Per-target inner loops of pooling over plain channels; internal to this folder.

#include <cstdint>

namespace sdx::cpu {

// Rows of results of one channel. The input rows of each window are combined into a row of `buffer`, which has the padding's
// value (-inf or 0) on both sides; then neighbours in that row are combined.
struct PoolRows {
  const float* x = nullptr;               // the channel
  std::int64_t width = 0;                 // of input rows
  const std::int64_t* first = nullptr;    // [rows + 1]: where each result row's `offsets` begin
  const std::int64_t* offsets = nullptr;  // of input rows from x
  std::int64_t rows = 0;
  float* buffer = nullptr;  // [rows][buffer_step]; input columns begin at `left`
  std::int64_t buffer_step = 0, left = 0;
  std::int64_t kernel = 1, stride = 1, dilation = 1;  // of columns; stride 1, or 2 without dilation
  float fill = 0;                                     // a row's value if its windows hold no input row
  std::int64_t columns = 0;                           // of results
  const float* const* scales = nullptr;               // per row, for its sums
  float* y = nullptr;                                 // [rows][columns]
};

// Length of a row of `buffer`: everything that windows touch, and the elements that the last vectors read beyond that.
inline std::int64_t pool_buffer_step(const PoolRows& p, std::int64_t lanes) {
  const std::int64_t reach = (p.columns - 1) * p.stride + (p.kernel - 1) * p.dilation + 1;
  return (reach > p.left + p.width ? reach : p.left + p.width) + 4 * lanes;
}

struct PoolKernels {
  int lanes;
  // Whether all of x[0, n) is finite, as max_rows() requires: x86's maximum of NaN and a number depends on their order.
  bool (*finite)(const float* x, std::int64_t n);
  void (*max_rows)(const PoolRows& p);
  void (*sum_rows)(const PoolRows& p);
};

const PoolKernels& pool_kernels();

}  // namespace sdx::cpu
