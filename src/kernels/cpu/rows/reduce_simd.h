#pragma once
// The per-target functions behind reduce.h; internal to this folder. No threading.

#include <cstdint>

#include "kernels/cpu/rows/reduce.h"

namespace sdx::cpu {

struct ReduceKernels {
  float (*row)(Reduce op, const float* x, std::int64_t n);
  void (*columns)(Reduce op, const float* x, float* y, std::int64_t axis, std::int64_t inner, std::int64_t begin,
                  std::int64_t end);
  // Rows that side_by_side() accepts.
  int lanes;
  int medium;
  void (*short_rows)(Reduce op, const float* x, float* y, std::int64_t rows, std::int64_t n);
  // Rows shorter than a vector, and of operations that reduces_in_parts() rows of up to `medium` elements.
  bool side_by_side(Reduce op, std::int64_t n) const { return n < lanes || (n <= medium && reduces_in_parts(op)); }
  // Position of the largest (smallest) element; axis below 2^31.
  std::int64_t (*arg_extreme)(const float* x, std::int64_t n, bool max, bool last);
  void (*arg_extreme_columns)(const float* x, std::int64_t* y, std::int64_t axis, std::int64_t inner, std::int64_t begin,
                              std::int64_t end, bool max, bool last);
};

const ReduceKernels& reduce_kernels();

}  // namespace sdx::cpu
