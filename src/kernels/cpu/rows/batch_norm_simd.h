#pragma once
// The per-target functions behind batch_norm.h; internal to this folder. No threading.

#include <cstdint>

namespace sdx::cpu {

struct BatchNormKernels {
  float (*sum)(const float* x, std::int64_t n);
  // Sum of (x - mean)^2.
  float (*spread)(const float* x, float mean, std::int64_t n);
  // Sums: [0] of dy, [1] of dy * (x - mean).
  void (*grad_sums)(const float* dy, const float* x, float mean, std::int64_t n, float* sums);
  // dx = a * dy + b * (x - mean) + c.
  void (*grad)(const float* dy, const float* x, float mean, float a, float b, float c, float* dx, std::int64_t n);
};

const BatchNormKernels& batch_norm_kernels();

}  // namespace sdx::cpu
