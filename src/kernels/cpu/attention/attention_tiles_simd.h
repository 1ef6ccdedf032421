#pragma once
// Per-target products of a few queries with rows of keys and values, and rows of bytes; internal to this folder.

#include <cstdint>

namespace sdx::cpu {

// Products with rows of one element type. `ahead`: the rows of that type to read next (or null), prefetched meanwhile: if rows
// are in blocks, the hardware prefetches each block too late.
struct RowProducts {
  // scores[i * ld_scores + j] = q[i, :] . rows[j, :] for i < queries, j < n; q has rows `ld_q`, keys rows `ld_rows` elements
  // apart.
  void (*dots)(const float* q, std::int64_t ld_q, std::int64_t queries, const void* rows, std::int64_t ld_rows, std::int64_t n,
               std::int64_t size, float* scores, std::int64_t ld_scores, const void* ahead);
  // sums[i * ld_sums + d] += sum_j p[i * ld_p + j] rows[j, d] for i < queries, d < size.
  void (*mix)(const float* p, std::int64_t ld_p, std::int64_t queries, const void* rows, std::int64_t ld_rows, std::int64_t n,
              std::int64_t size, float* sums, std::int64_t ld_sums, const void* ahead);
};

struct AttentionTileKernels {
  RowProducts floats, halves, bfloats, bytes;
  // y = x * scale
  void (*widen_bytes)(const std::int8_t* x, float scale, float* y, std::int64_t n);
  // y[i] = x[i] / scale, rounded to the nearest even; returns the scale, the largest magnitude / 127, or NaN (and y = 0) if x
  // holds a NaN or an infinity.
  float (*quantize)(const float* x, std::int8_t* y, std::int64_t n);
};

const AttentionTileKernels& attention_tile_kernels();

}  // namespace sdx::cpu
