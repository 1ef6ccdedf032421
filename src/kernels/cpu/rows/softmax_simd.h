#pragma once
// The per-target functions behind softmax.h; internal to this folder. No threading.

#include <cstdint>

namespace sdx::cpu {

struct SoftmaxKernels {
  void (*rows)(const float* x, float* y, std::int64_t rows, std::int64_t n, bool log);
  // [axis, inner] at columns [begin, end).
  void (*columns)(const float* x, float* y, std::int64_t axis, std::int64_t inner, std::int64_t begin, std::int64_t end,
                  bool log);
};

const SoftmaxKernels& softmax_kernels();

}  // namespace sdx::cpu
