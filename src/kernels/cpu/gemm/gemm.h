#pragma once
// Matrix products in float.
//
// Common contract: matrices are row-major, with leading dimensions counted in elements and at least the row length. Pointers need
// only float alignment, the sources of pack functions none. Outputs must not overlap inputs, except that a residual may be the
// output itself. Thread-safe; work is split over current_pool(). Each computing thread keeps up to 0.8 MB of scratch memory for
// panels packed on the fly. Sums run in float, in blocks of 256 along K. Results are the same for the same instruction set and
// thread count.

#include <cstddef>
#include <cstdint>

#include "base/tools_api.h"
#include "kernels/cpu/elementwise/elementwise.h"

namespace sdx::cpu {

// What is applied to A * B before it is stored: C = act(alpha A B + bias_scale bias + residual_scale residual).
struct Epilogue {
  const float* bias = nullptr;  // n values, or m values when bias_per_row
  bool bias_per_row = false;
  float bias_scale = 1.0F;          // ONNX Gemm's beta
  const float* residual = nullptr;  // [m, n]; C itself gives C = A B + residual_scale C
  std::int64_t ld_residual = 0;
  float residual_scale = 1.0F;
  UnarySpec act;
};

// Packs weights in the order in which the inner kernel reads them. Valid only under the instruction set they were packed for.
// op(B) is [k, n]: `b` is [k, n], or [n, k] if trans. Every element is multiplied by `scale`.
SDX_TOOLS_API std::size_t packed_b_bytes(std::int64_t k, std::int64_t n);
SDX_TOOLS_API void pack_b_f32(const void* b, std::int64_t ldb, bool trans, std::int64_t k, std::int64_t n, float scale,
                              float* packed);
// The same for the left operand. op(A) is [m, k]: `a` is [m, k], or [k, m] if trans.
void pack_a_f32(const void* a, std::int64_t lda, bool trans, std::int64_t m, std::int64_t k, float scale, float* packed);

struct GemmArgs {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  // Left operand: packed_a, or else a.
  const float* a = nullptr;
  std::int64_t lda = 0;
  bool trans_a = false;
  const float* packed_a = nullptr;
  // Right operand: packed_b, or else b.
  const float* b = nullptr;
  std::int64_t ldb = 0;
  bool trans_b = false;
  const float* packed_b = nullptr;
  // With b: gives the same bits as packed_b would. Slower than otherwise where there are few rows. b needs no alignment.
  bool like_packed = false;
  float* c = nullptr;
  std::int64_t ldc = 0;
  float alpha = 1.0F;
  Epilogue epilogue;
  // For consecutive products of a few rows with the same packed_b: 1 and -1, alternating, go up and down its columns, so that
  // each product begins with what the previous one left in the second-level cache. Sums are the same either way.
  int sweep = 0;
};

// One product. Any of m, n, k may be 0 (k = 0: C is the epilogue of zeros).
SDX_TOOLS_API void gemm_f32(const GemmArgs& args);

// Computes `batch` products of one shape. Product i uses a + a_offsets[i] (packed or not), b + b_offsets[i] and c + c_offsets[i],
// in elements; null: all zero. All products share the epilogue's bias; a residual advances like C.
SDX_TOOLS_API void gemm_batch_f32(const GemmArgs& args, std::int64_t batch, const std::int64_t* a_offsets,
                                  const std::int64_t* b_offsets, const std::int64_t* c_offsets);

}  // namespace sdx::cpu
