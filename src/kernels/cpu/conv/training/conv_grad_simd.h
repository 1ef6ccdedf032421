#pragma once
// Per-target inner loops of the convolutions' gradients; internal to this folder.

#include <cstdint>

namespace sdx::cpu {

struct ConvGradKernels {
  // out[i] = x[2 * i], i < n; reads nothing past x[2 * (n - 1)].
  void (*every_second)(const float* x, std::int64_t n, float* out);
  // sums[i] += the dot product of dy[0, n) and x[offsets[i], offsets[i] + n).
  void (*dots)(const float* dy, const float* x, const std::int64_t* offsets, std::int64_t count, std::int64_t n, float* sums);
};

const ConvGradKernels& conv_grad_kernels();

}  // namespace sdx::cpu
