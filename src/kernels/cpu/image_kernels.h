#pragma once
// Per-target inner loops of pooling, resizing and transposition; internal to this folder.

#include <cstdint>

#include "kernels/cpu/resize.h"

namespace sdx::cpu {

struct ImageKernels {
  int lanes;
  // y[i] = max (or sum) over `count` rows of rows[r][i], i < n; rows readable up to n rounded up to lanes. sum: times scale[i].
  void (*max_rows)(const float* const* rows, std::int64_t count, float* y, std::int64_t n);
  void (*sum_rows)(const float* const* rows, std::int64_t count, const float* scale, float* y, std::int64_t n);
  // y[i] = a[i] + t * (b[i] - a[i])
  void (*lerp)(const float* a, const float* b, float t, float* y, std::int64_t n);
  // y[j * ldy + i] = x[i * ldx + j] for i < rows, j < columns; 4-byte elements.
  void (*transpose32)(const std::uint32_t* x, std::int64_t ldx, std::uint32_t* y, std::int64_t ldy, std::int64_t rows,
                      std::int64_t columns);
  // The same of bytes.
  void (*transpose8)(const std::uint8_t* x, std::int64_t ldx, std::uint8_t* y, std::int64_t ldy, std::int64_t rows,
                     std::int64_t columns);
};

const ImageKernels& image_kernels();

}  // namespace sdx::cpu
