#pragma once
// Per-target inner loops of shrinking pictures and splitting them into planes; internal to this folder.

#include <cstddef>
#include <cstdint>

namespace sdx::cpu {

struct ShrinkKernels {
  // y[i] = sum over r < count of weights[r] * rows[r * stride + i], i < n
  void (*add_rows)(const std::uint8_t* rows, std::ptrdiff_t stride, const float* weights, std::int64_t count, float* y,
                   std::int64_t n);
  // planes[c][i] = (pixels[3 * i + c] - mean[c]) * scale, i < n
  void (*split3)(const std::uint8_t* pixels, std::int64_t n, const float* mean, float scale, float* const* planes);
};

const ShrinkKernels& shrink_kernels();

}  // namespace sdx::cpu
