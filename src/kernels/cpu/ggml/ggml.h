#pragma once
// Products with weights in ggml's blocks (tensor/ggml.h), straight from the file's bytes: nothing is packed, so the start takes
// no time, and no memory beyond the mapped file, which processes share. Weights become float32 in registers; multiplying and
// adding a block's scale and minimum is one rounding here, two in ggml_dequantize().

#include <cstdint>
#include <span>

#include "kernels/cpu/elementwise/elementwise.h"
#include "tensor/ggml.h"

namespace sdx::cpu {

// Precision of the activations. `int8`: blocks of 32 have a scale in float32, so that the error is at most llama.cpp's, whose
// blocks of 32 have one in float16, and of K-quants' 256 one in float32. Types and instruction sets for which
// ggml_multiplies_bytes() is false compute in float32, and so do products with activations that are not finite, and of fewer than
// kGgmlRoundedRows rows, for which taking blocks apart into bytes takes longer than it saves.
inline constexpr std::int64_t kGgmlRoundedRows = 5;
enum class GgmlAccuracy : std::uint8_t { float32, int8 };
bool ggml_multiplies_bytes(const GgmlFormat& format);

// c[m, n] = act(a[m, k] * W^T + bias[n]), W: n rows of k elements, a multiple of the format's block; bias may be null. `weights`
// needs no alignment. In float32, up to 16 rows of `a` are multiplied by the blocks directly, eight at a time or fewer; more rows
// expand blocks of weights into scratch for gemm_f32's kernel. Thread-safe, split over current_pool(). The output must not
// overlap.
struct GgmlArgs {
  const GgmlFormat* format = nullptr;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  const float* a = nullptr;
  std::int64_t lda = 0;
  const void* weights = nullptr;
  const float* bias = nullptr;
  UnarySpec act;
  GgmlAccuracy accuracy = GgmlAccuracy::float32;
  float* c = nullptr;
  std::int64_t ldc = 0;
};
void ggml_gemm(const GgmlArgs& args);

// Several products; threads share the work of all of them, so that many small ones keep all threads busy.
// None may depend on another's result.
void ggml_gemms(std::span<const GgmlArgs> all);

}  // namespace sdx::cpu
