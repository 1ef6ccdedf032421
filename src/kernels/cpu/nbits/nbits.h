#pragma once
// Weight-only quantised products (com.microsoft MatMulNBits, bits 4 and 8): float activations times weights in blocks along K,
// each with its own scale and zero point; weights are expanded in registers, so that decoding moves half a byte per weight.
// If the processor multiplies bytes quickly, activations become fixed-point numbers (nbits_digits.h).

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/elementwise/elementwise.h"

namespace sdx::cpu {

// The formats are those of MatMulNBits: B [n, k_blocks, block * bits / 8] with the low nibble first; scales [n, k_blocks]; zero
// points [n, ceil(k_blocks * bits / 8)] packed likewise, or null (2^(bits-1)), or as floats in zero_points_f32. Blocks are a
// power of two >= 16; the last one may extend past k: its surplus codes are multiplied by zeros.
struct NBitsSource {
  std::int64_t k = 0;
  std::int64_t n = 0;
  int bits = 4;
  std::int64_t block = 32;
  const void* b = nullptr;
  const void* scales = nullptr;       // float
  const void* zero_points = nullptr;  // packed
  const void* zero_points_f32 = nullptr;
};

// Packs for the inner kernel; the result is valid only under the current instruction set. Sources need no alignment.
std::size_t nbits_packed_bytes(const NBitsSource& source);
void nbits_pack(const NBitsSource& source, void* packed);

// Precision of the activations in a product: all of float32 (the error is that of a product in float32), 16 bits relative to the
// largest of 32 (more than float16 or bfloat16 have), or 8.
enum class NBitsAccuracy { float32, float16, int8 };

// c[m, n] = act(a[m, k] * W + bias[n]); bias may be null. Shapes and bits as packed. Few rows use the packed weights directly;
// more rows expand blocks of weights into scratch for gemm_f32's kernel. Thread-safe, split over current_pool().
struct NBitsArgs {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  int bits = 4;
  std::int64_t block = 32;
  const float* a = nullptr;
  std::int64_t lda = 0;
  const void* packed = nullptr;
  const float* bias = nullptr;
  UnarySpec act;
  NBitsAccuracy accuracy = NBitsAccuracy::float32;
  float* c = nullptr;
  std::int64_t ldc = 0;
};
void nbits_gemm(const NBitsArgs& args);

}  // namespace sdx::cpu
