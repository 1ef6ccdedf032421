#pragma once
// The per-target inner kernels of blocked_pool.cc; internal to this folder.

#include <cstdint>

namespace sdx::cpu {

inline constexpr std::int64_t kMeanPixels = 64;

struct BlockedPoolKernels {
  // `count` windows of one size, `step` floats apart: the largest element (NaN wins), or the sum times `factor`.
  void (*window_max)(const float* x, std::int64_t step, std::int64_t rows, std::int64_t columns, std::int64_t row_step,
                     std::int64_t tap_step, float* y, std::int64_t count);
  void (*window_sum)(const float* x, std::int64_t step, std::int64_t rows, std::int64_t columns, std::int64_t row_step,
                     std::int64_t tap_step, float factor, float* y, std::int64_t count);
  // y[c] = factor * the sum over `pixels`, in pieces of kMeanPixels whose sums are then added.
  void (*mean)(const float* x, float factor, float* y, std::int64_t pixels);
};

const BlockedPoolKernels& blocked_pool_kernels();

}  // namespace sdx::cpu
