#pragma once
// Per-target inner loops over ggml's blocks; internal to this folder.

#include <cstdint>

#include "tensor/ggml.h"

namespace sdx::cpu {

struct GgmlKernels {
  // out[i] = x row i times one row of k weights, for m <= 4 or 8 rows, ldx apart.
  void (*dots)(GgmlType type, const void* row, std::int64_t k, const float* x, std::int64_t ldx, std::int64_t m, float* out);
  // Eight rows of x times two rows of weights, row_bytes apart: the second's products follow the first's. Null if there are too
  // few registers for the sums of both.
  void (*dots_two)(GgmlType type, const void* row, std::int64_t row_bytes, std::int64_t k, const float* x, std::int64_t ldx,
                   float* out);
  // One row of k weights as floats.
  void (*expand)(GgmlType type, const void* row, std::int64_t k, float* out);
};

const GgmlKernels& ggml_kernels();

}  // namespace sdx::cpu
