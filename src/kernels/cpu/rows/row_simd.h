#pragma once
// Per-target row primitives behind softmax, norms and reductions; internal to this folder. No threading.

#include <cstdint>

#include "kernels/cpu/rows/norm.h"
#include "kernels/cpu/rows/reduce.h"

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
  // sum, max and min of [axis, inner] at columns [begin, end); inner == 1: one row.
  void (*reduce_i32)(Reduce op, const std::int32_t* x, std::int32_t* y, std::int64_t axis, std::int64_t inner, std::int64_t begin,
                     std::int64_t end);
  void (*reduce_i64)(Reduce op, const std::int64_t* x, std::int64_t* y, std::int64_t axis, std::int64_t inner, std::int64_t begin,
                     std::int64_t end);
  // Where the largest (smallest) element is; axis below 2^31.
  std::int64_t (*arg_extreme)(const float* x, std::int64_t n, bool max, bool last);
  void (*arg_extreme_columns)(const float* x, std::int64_t* y, std::int64_t axis, std::int64_t inner, std::int64_t begin,
                              std::int64_t end, bool max, bool last);
  // The first position in [i, n) with an element above (below) the bound, or NaN; n: none.
  std::int64_t (*next_beyond)(const float* x, std::int64_t i, std::int64_t n, float bound, bool above);
  // One image: columns [begin, end) of [channels, inner].
  void (*lrn)(const float* x, float* y, std::int64_t channels, std::int64_t inner, std::int64_t begin, std::int64_t end,
              std::int64_t size, float alpha, float beta, float bias);
};

const RowKernels& row_kernels();

}  // namespace sdx::cpu
