#pragma once
// Integer matrix products with zero points, on numpy-style batches of matrices.

#include <cstdint>
#include <vector>

#include <sdx/tensor.hpp>

#include "ops/context.h"

namespace sdx::ops {

// acc[m, n] = sum over k of a[m, k] * b[k, n], all contiguous rows (leading dimensions lda, ldb, ldc). Sums wrap around in 32
// bits, which ONNX MatMulInteger-10 permits ("accumulation may overflow if and only if in 32 bits"). Single-threaded.
void integer_gemm(std::int64_t m, std::int64_t n, std::int64_t k, const std::int16_t* a, std::int64_t lda, const std::int16_t* b,
                  std::int64_t ldb, std::int32_t* acc, std::int64_t ldc);

// numpy.matmul's shapes: rank 1 operands get an axis that the result loses again.
struct MatMulShapes {
  std::int64_t m = 0, n = 0, k = 0;
  Shape out;
  Shape outer_a, outer_b;                      // the operands' batch axes
  std::vector<std::int64_t> batch_a, batch_b;  // for each matrix of the result, the number of a's and of b's
  // Fills batch_a and batch_b. Separate, so that it can come after the output is allocated: broadcasting multiplies, and a
  // result that is too large should fail there.
  void plan_batches();
  std::int64_t batches() const { return static_cast<std::int64_t>(batch_a.size()); }
};
// Throws Error(runtime_failure) naming both shapes.
MatMulShapes matmul_shapes(const Shape& a, const Shape& b);
// Sets output 0 from the shapes of inputs a and b. Throws Error(invalid_model) for known extents that do not fit.
void infer_matmul(InferContext& c, std::size_t a, std::size_t b, DataType elem);

// A scale or zero point of an operand: one for all, one per row (a) or column (b), or one per row or column of each matrix.
// Returns 0, m, or batch * rows + m: see index().
struct QuantParam {
  std::int64_t count = 1, lines = 1;
  std::int64_t index(std::int64_t batch, std::int64_t line) const {
    return count == 1 ? 0 : count == lines ? line : batch * lines + line;
  }
};
// `lines`: rows of a or columns of b; `matrices`: the number of matrices in that operand. Throws Error(invalid_model).
QuantParam quant_param(const char* what, const Tensor& param, std::int64_t lines, std::int64_t matrices);

// acc[batch, m, n] = sum over k of (a - a_zero) * (b - b_zero); a and b int8 or uint8; null: zero point 0.
std::vector<std::int32_t> integer_matmul(const OpContext& c, const MatMulShapes& s, const Tensor& a, const Tensor* a_zero,
                                         const Tensor& b, const Tensor* b_zero);

// value - zero as 16 bits, for 8-bit types: -255..255.
void widen(DataType type, const void* data, std::int64_t begin, std::int64_t count, std::int32_t zero, std::int16_t* out);

}  // namespace sdx::ops
