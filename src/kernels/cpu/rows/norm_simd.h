#pragma once
// The per-target functions behind norm.h; internal to this folder. No threading.

#include <cstdint>

#include "kernels/cpu/rows/norm.h"

namespace sdx::cpu {

struct NormKernels {
  void (*layer_norm)(const LayerNormArgs& args, std::int64_t row, std::int64_t n);
  // y = x * scale + shift.
  void (*affine)(const float* x, float scale, float shift, float* y, std::int64_t n);
  // y[i] = x[i] * scale[i] + shift[i].
  void (*affine_columns)(const float* x, const float* scale, const float* shift, float* y, std::int64_t n);
  // Mean and variance (of the population) of n values.
  void (*moments)(const float* x, std::int64_t n, float* mean, float* variance);
  // One image: columns [begin, end) of [channels, inner].
  void (*lrn)(const float* x, float* y, std::int64_t channels, std::int64_t inner, std::int64_t begin, std::int64_t end,
              std::int64_t size, float alpha, float beta, float bias);
};

const NormKernels& norm_kernels();

}  // namespace sdx::cpu
