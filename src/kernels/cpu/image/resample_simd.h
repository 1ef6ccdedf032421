#pragma once
// The per-target functions behind resample.h; internal to this folder. No threading.

#include <cstdint>

#include "kernels/cpu/image/resample.h"

namespace sdx::cpu {

struct ResampleKernels {
  // y[i] = sum of weights[k] * rows[k * stride + i] over k < count, i < n. count >= 1.
  void (*down_f32)(const float* rows, std::int64_t stride, const float* weights, std::int64_t count, float* y, std::int64_t n);
  void (*down_u8)(const std::uint8_t* rows, std::int64_t stride, const double* weights, std::int64_t count, double* y,
                  std::int64_t n);
  // One row.
  void (*across_f32)(const float* row, const AxisWeights<float>& columns, float* y);
  void (*across_u8)(const double* row, const AxisWeights<double>& columns, std::uint8_t* y);
};

const ResampleKernels& resample_kernels();

}  // namespace sdx::cpu
