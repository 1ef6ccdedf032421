#pragma once
// The per-target loops of gemm_strassen_f32.

#include <cstdint>

#include "kernels/cpu/elementwise/elementwise.h"

namespace sdx::cpu {

// Products of quarters sum this many products at a time; gemm_f32() adds 256. The algorithm doubles the rounding errors of plain
// sums: with sums of 128 its error is 1.2 to 1.45 times that of gemm_f32() (64: 1.05 to 1.13), and that of whole transformers is
// 0.94 to 1.06 times ONNX Runtime's. Sums of 64 make BERT and ViT 1 to 3 % slower.
inline constexpr std::int64_t kStrassenSum = 128;
inline constexpr std::int64_t kMostStrassenSums = 8;

// The destination of a product of quarters: the tile's sums, contiguous rows of nr, and the last one C: sums + sign product [+
// residual] [+ bias], then the activation function.
struct StrassenTarget {
  float* sums = nullptr;
  float sign = 1.0F;
  bool accumulate = false;
  float* c = nullptr;               // this tile's corner; null if more products follow
  std::int64_t rows = 0;            // of C
  const float* residual = nullptr;  // this tile's corner
  const float* bias = nullptr;      // from this tile's first column on
};

// The right operand: one panel, or the sum or difference of two.
enum class StrassenRight : std::uint8_t { one, sum, difference };

// A register tile of a product of quarters: `rows` rows of A, stored [k][rows], times a panel of nr columns stored in pieces
// [k][nr], each of which is summed separately.
struct StrassenTile {
  const float* a = nullptr;
  std::int64_t rows = 0;  // 1 .. mr
  std::int64_t pieces = 0;
  std::int64_t k[kMostStrassenSums] = {};
  const float* b[kMostStrassenSums] = {};
  // For sum and difference: the second terms, and where to store the result for the tiles that follow.
  StrassenRight right = StrassenRight::one;
  const float* b2[kMostStrassenSums] = {};
  float* made = nullptr;
  // Memory to prefetch: `ahead_step` bytes further with every second step.
  const char* ahead = nullptr;
  std::int64_t ahead_step = 0;
  StrassenTarget to[2];
  int targets = 0;
  std::int64_t ldc = 0;
  std::int64_t ld_residual = 0;
  UnarySpec act;
};

struct StrassenKernels {
  void (*tile)(const StrassenTile& t);
  // Computes five sums of `count` floats of the quarters q11, q12, q21, q22, for both the left and the right operand: q11 + q22,
  // q11 + q12, q21 + q22, q21 - q11 and q12 - q22, to out[0] .. out[4].
  void (*sums)(const float* const quarters[4], std::int64_t count, float* const out[5]);
  // The sum of the squares of x[0 .. n).
  float (*squares)(const float* x, std::int64_t n);
  // Adds the squares of each of nr columns, stored [k][nr], to out.
  void (*column_squares)(const float* panel, std::int64_t k, float* out);
};

const StrassenKernels& strassen_kernels();

}  // namespace sdx::cpu
