#pragma once
// Per-target row primitives of attention; internal to this folder.

#include <cstdint>

namespace sdx::cpu {

struct AttentionKernels {
  // Replaces one row of scores by exp(score - max) and updates the running max and sum; returns the factor exp(old max - new max)
  // by which earlier sums must be scaled.
  float (*online_softmax)(float* scores, std::int64_t n, float* max, float* sum);
  void (*scale)(const float* x, float factor, float* y, std::int64_t n);
  // The same down the first `count` columns, whole vectors, of scores [n, width]; sums [m, width] are scaled by each column's
  // factor.
  void (*panel_softmax)(float* scores, std::int64_t n, std::int64_t width, std::int64_t count, float* max, float* sum,
                        float* sums, std::int64_t m);
  // x[i, :] += row[i]
  void (*add_rows)(float* x, const float* row, std::int64_t n, std::int64_t width);
  // x[i, j] += mask[j, i] for i < n, j < count; rows of x have `width` elements, of which those up to the end of a vector after
  // `count` may change, and rows of the mask are ld apart.
  void (*add_columns)(float* x, std::int64_t width, const float* mask, std::int64_t ld, std::int64_t n, std::int64_t count);
  // y[j, i] = x[i, j] factors[j] for i < n, j < count; x has rows of `width`, y of `ldy` elements.
  void (*store_columns)(const float* x, std::int64_t width, const float* factors, float* y, std::int64_t ldy, std::int64_t n,
                        std::int64_t count);
  // Whether all of the first `count` columns of x[n, width], whole vectors, are finite, and so are their `sum`, and whether each
  // column's `max` lies between `least` and `most`, both excluded.
  bool (*ordinary_columns)(const float* x, std::int64_t width, const float* max, const float* sum, float least, float most,
                           std::int64_t n, std::int64_t count);
  bool (*all_finite)(const float* x, std::int64_t n);
  // x[n, size] with rows ldx apart -> tiles of `most` columns at most, cut evenly, each [n][`most`, rounded up to whole vectors].
  // `x` holds only rows [first, first + count). `out` is aligned to vectors.
  void (*column_tiles)(const float* x, std::int64_t ldx, std::int64_t n, std::int64_t first, std::int64_t count,
                       std::int64_t size, std::int64_t most, float* out);
  // rotate_f32 of the pairs (i, i + half).
  void (*rotate)(const float* x, const float* cos, const float* sin, float* y, std::int64_t half);
};

const AttentionKernels& attention_kernels();

}  // namespace sdx::cpu
