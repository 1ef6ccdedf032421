#pragma once
// Per-target row primitives behind softmax, norms and reductions; internal to this folder. No threading.

#include <cstdint>

#include "kernels/cpu/norm.h"
#include "kernels/cpu/reduce.h"

namespace sdx::cpu {

struct RowKernels {
  int lanes;
  void (*softmax)(const float* x, float* y, std::int64_t n, bool log);
  // [axis, inner] at columns [begin, end).
  void (*softmax_columns)(const float* x, float* y, std::int64_t axis, std::int64_t inner, std::int64_t begin, std::int64_t end,
                          bool log);
  void (*layer_norm)(const LayerNormArgs& args, std::int64_t row, std::int64_t n);
  void (*affine)(const float* x, float scale, float shift, float* y, std::int64_t n);
  // Mean and variance (of the population) of n values.
  void (*moments)(const float* x, std::int64_t n, float* mean, float* variance);
  float (*reduce)(Reduce op, const float* x, std::int64_t n);
  void (*reduce_columns)(Reduce op, const float* x, float* y, std::int64_t axis, std::int64_t inner, std::int64_t begin,
                         std::int64_t end);
  // One image: columns [begin, end) of [channels, inner].
  void (*lrn)(const float* x, float* y, std::int64_t channels, std::int64_t inner, std::int64_t begin, std::int64_t end,
              std::int64_t size, float alpha, float beta, float bias);
};

const RowKernels& row_kernels();

}  // namespace sdx::cpu
