#pragma once
// Per-target inner loops of pooling and resizing; internal to this folder.

#include <cstdint>

namespace sdx::cpu {

struct ImageKernels {
  int lanes;
  // y[i] = max (or sum) over `count` rows of rows[r][i], i < n; rows readable up to n rounded up to lanes. sum: times scale[i].
  void (*max_rows)(const float* const* rows, std::int64_t count, float* y, std::int64_t n);
  void (*sum_rows)(const float* const* rows, std::int64_t count, const float* scale, float* y, std::int64_t n);
  // y[2 i] = y[2 i + 1] = x[i]; the same in z if it is not null.
  void (*twice)(const float* x, float* y, float* z, std::int64_t n);
  // y[i] = a[i] + t * (b[i] - a[i])
  void (*lerp)(const float* a, const float* b, float t, float* y, std::int64_t n);
};

const ImageKernels& image_kernels();

}  // namespace sdx::cpu
