#pragma once
// Products of float activations and weights that stay in 16 bits (float16 or bfloat16) and are widened in registers. Weights take
// half the memory of packed floats; with few rows, when weights come from memory, each token also reads half as many bytes.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/gemm/gemm.h"

namespace sdx::cpu {

enum class HalfType { float16, bfloat16 };

// Packs bit patterns of op(W)[k, n] with rows `ld` apart (W is [n, k] if `trans`), any alignment, into panels for half_gemm().
// Valid only under the instruction set it was made for.
std::size_t half_packed_bytes(std::int64_t k, std::int64_t n);
void half_pack(const void* w, std::int64_t ld, bool trans, std::int64_t k, std::int64_t n, void* packed);

// c[m, n] = act(a[m, k] W + bias[n] + residual[m, n]), with products and sums in float. bias and residual may be null; `c` may be
// the residual. Strides count elements. Thread-safe; work is split over current_pool().
struct HalfGemmArgs {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  HalfType type = HalfType::float16;
  const float* a = nullptr;
  std::int64_t lda = 0;
  const void* packed = nullptr;
  const float* bias = nullptr;
  const float* residual = nullptr;
  std::int64_t ld_residual = 0;
  UnarySpec act;
  float* c = nullptr;
  std::int64_t ldc = 0;
};
void half_gemm(const HalfGemmArgs& args);

// Everything but the weights.
GemmArgs float_args(const HalfGemmArgs& args);

}  // namespace sdx::cpu
