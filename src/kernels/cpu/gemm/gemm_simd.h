#pragma once
// The per-target register tiles of gemm_f32 and of the convolutions built on it.

#include <cstdint>

#include "kernels/cpu/elementwise/elementwise.h"

namespace sdx::cpu {

// A register tile: C[m, n] from an A tile, stored [k][m] or, if lda is not 0, as rows `lda` apart, and a B panel stored [k][ldb],
// of which nr columns are readable.
struct GemmTile {
  const float* a = nullptr;
  std::int64_t lda = 0;
  std::int64_t a_step = 0;  // for a tile stored [k][a_step] in a larger matrix; 0: m
  const float* b = nullptr;
  std::int64_t ldb = 0;
  // If not null: instead, row k of the B panel is at b + b_rows[k]. Only for an A tile stored [k][m].
  const std::int64_t* b_rows = nullptr;
  std::int64_t k = 0;
  float* c = nullptr;
  std::int64_t ldc = 0;
  std::int64_t m = 0;  // 1 .. mr
  std::int64_t n = 0;  // 1 .. nr
  float alpha = 1.0F;
  bool accumulate = false;          // adds to what C holds, for later blocks of K
  bool last = true;                 // apply bias and activation
  const float* bias_col = nullptr;  // from this tile's first column on
  const float* bias_row = nullptr;  // from this tile's first row on
  float bias_scale = 1.0F;
  const float* residual = nullptr;  // this tile's corner; null in all but the first block of K
  std::int64_t ld_residual = 0;
  float residual_scale = 1.0F;
  UnarySpec act;
  // Memory needed next, prefetched line by line while this tile is multiplied: ahead_step bytes per two steps of K, at most 256.
  // Only tiles of at least 4 rows do this.
  const char* ahead = nullptr;
  std::int64_t ahead_step = 0;
};

struct GemmKernels {
  int mr;
  int nr;
  void (*tile)(const GemmTile& t);
  // Packs op(A)[m0.., k0..], whose element (i, k) is a[i * rs + k * cs], into one tile [k][m].
  void (*pack_a_tile)(const char* a, std::int64_t rs, std::int64_t cs, std::int64_t m, std::int64_t k, float scale, float* out);
  // Packs op(B), whose element (k, j) is b[k * rs + j * cs], into panels of nr columns, each [k][nr], padded with zeros.
  void (*pack_b_panels)(const char* b, std::int64_t rs, std::int64_t cs, std::int64_t k, std::int64_t n, float scale, float* out);
  // y[j] = sum_k x[k] b[k * ldb + j] for j < n.
  void (*gemv_rows)(const float* x, const float* b, std::int64_t ldb, std::int64_t k, std::int64_t n, float* y);
  // y[j] = sum_k x[k] b[j * ldb + k] for j < n; y is strided.
  void (*gemv_dots)(const float* x, const float* b, std::int64_t ldb, std::int64_t k, std::int64_t n, float* y, std::int64_t sy);
  // Applies an epilogue to products (used after gemv): rows m, columns n, not accumulated.
  void (*finish)(const GemmTile& t, const float* product, std::int64_t ld_product);
};

const GemmKernels& gemm_kernels();

}  // namespace sdx::cpu
