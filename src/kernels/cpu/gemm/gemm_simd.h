#pragma once
// The per-target inner kernels of gemm_f32 and of the convolutions built on it; internal to this folder.

#include <cstdint>

#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/simd/cuts.h"

namespace sdx::cpu {

// A register tile: C[m, n] from an A tile stored [k][m], or as rows `lda` apart where that is not 0, and a B panel stored
// [k][ldb], of which nr columns are readable.
struct GemmTile {
  const float* a = nullptr;
  std::int64_t lda = 0;
  const float* b = nullptr;
  std::int64_t ldb = 0;
  std::int64_t k = 0;
  float* c = nullptr;
  std::int64_t ldc = 0;
  std::int64_t m = 0;  // 1 .. mr
  std::int64_t n = 0;  // 1 .. nr
  float alpha = 1.0F;
  bool accumulate = false;          // add to what C holds: a later block of K
  bool last = true;                 // apply bias and activation
  const float* bias_col = nullptr;  // this tile's first column
  const float* bias_row = nullptr;  // this tile's first row
  float bias_scale = 1.0F;
  const float* residual = nullptr;  // this tile's corner; null in all but the first block of K
  std::int64_t ld_residual = 0;
  float residual_scale = 1.0F;
  UnarySpec act;
};

struct GemmKernels {
  int mr;
  int nr;
  void (*tile)(const GemmTile& t);
  // op(A)[m0.., k0..] with element (i, k) at a[i * rs + k * cs] -> one tile [k][m].
  void (*pack_a_tile)(const char* a, std::int64_t rs, std::int64_t cs, std::int64_t m, std::int64_t k, float scale, float* out);
  // op(B) with element (k, j) at b[k * rs + j * cs] -> panels of nr columns, each [k][nr], zero-padded.
  void (*pack_b_panels)(const char* b, std::int64_t rs, std::int64_t cs, std::int64_t k, std::int64_t n, float scale, float* out);
  // y[j] = sum_k x[k] b[k * ldb + j] for j < n.
  void (*gemv_rows)(const float* x, const float* b, std::int64_t ldb, std::int64_t k, std::int64_t n, float* y);
  // y[j] = sum_k x[k] b[j * ldb + k] for j < n; y is strided.
  void (*gemv_dots)(const float* x, const float* b, std::int64_t ldb, std::int64_t k, std::int64_t n, float* y, std::int64_t sy);
  // Applies an epilogue to products that are already in C (used after gemv): rows m, columns n, not accumulated.
  void (*finish)(const GemmTile& t, const float* product, std::int64_t ld_product);
};

const GemmKernels& gemm_kernels();

// A panel of 16 columns takes 16 KB, half of a usual first-level cache. As fast as 384 (83.5 to 85.3 GFLOP/s of 91.7 over 16
// shapes of transformers, both), and sums of 256 round less: the error is 0.82 of that of 384.
inline constexpr std::int64_t kGemmKBlock = 256;
inline constexpr std::int64_t kGemmNBlock = 256;  // columns packed on the fly at a time: 262 KB, in the second-level cache
inline constexpr std::int64_t kGemmMBlock = 252;  // rows packed on the fly at a time: 258 KB; a multiple of 6, 12 and 14

inline Cuts k_cuts(std::int64_t k) { return Cuts(k, kGemmKBlock); }

// Where a block of the right operand comes from when it is not packed ahead: writes rows [k0, k0 + kc) of columns
// [n0, n0 + nb) as panels (as pack_b_panels does). Called concurrently.
struct BPacker {
  const void* context = nullptr;
  void (*pack)(const void* context, std::int64_t k0, std::int64_t kc, std::int64_t n0, std::int64_t nb, float* out) = nullptr;
};

// C[m0:m1, n0:n1] on this thread. n0 must be a multiple of nr; m0 and m1 must be tile borders when packed_a is used. `packer`
// may be null when args.packed_b is set or args.b is used.
void gemm_block(const GemmKernels& kernels, const GemmArgs& args, const BPacker* packer, std::int64_t m0, std::int64_t m1,
                std::int64_t n0, std::int64_t n1);

// Rows [row, row + rows) and columns [column, column + columns) of C from their products, whose rows lie `ld` apart: alpha and
// the epilogue.
void gemm_finish(const GemmKernels& kernels, const GemmArgs& args, std::int64_t row, std::int64_t rows, std::int64_t column,
                 std::int64_t columns, const float* product, std::int64_t ld);

// A product of all rows with what `packer` makes, cut by columns over the current pool: each thread unpacks its part once.
void gemm_unpacking(const GemmArgs& args, const BPacker& packer);

// Cuts [m, n] into tasks for the current pool: `rows` and `columns` are the counts of cuts. `packed`: the right operand is in
// panels already, and a cut of the rows costs no more than reading it again.
struct TaskGrid {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
};
TaskGrid choose_grid(const GemmKernels& kernels, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch, bool packed);

}  // namespace sdx::cpu
