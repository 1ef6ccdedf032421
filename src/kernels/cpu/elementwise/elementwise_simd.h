#pragma once
// One table of elementwise kernels per instruction set; single-threaded ranges. Other kernels use it for their epilogues.

#include <cstdint>

#include "kernels/cpu/elementwise/elementwise.h"

namespace sdx::cpu {

enum class OneForRow : std::uint8_t { none, left, right };

struct ElementwiseKernels {
  void (*unary)(const UnarySpec& spec, const float* x, float* y, std::int64_t n);
  // The same in place over `rows` rows of n, ld apart: the function's constants are set up once for all of them.
  void (*unary_rows)(const UnarySpec& spec, float* y, std::int64_t ld, std::int64_t rows, std::int64_t n);
  void (*binary)(Binary op, const float* a, const float* b, float* y, std::int64_t n);
  void (*scalar_right)(Binary op, const float* a, float b, float* y, std::int64_t n);
  void (*scalar_left)(Binary op, float a, const float* b, float* y, std::int64_t n);
  // Computes rows of n, which are dense in y, and a_row and b_row elements apart in a and b. `one` says which operand has a
  // single element per row. All operations but pow.
  void (*binary_rows)(Binary op, OneForRow one, const float* a, std::int64_t a_row, const float* b, std::int64_t b_row, float* y,
                      std::int64_t rows, std::int64_t n);
  // One row: y = act(x + bias + residual); residual may be null.
  void (*bias_act)(const float* x, float bias, const float* residual, const UnarySpec& act, float* y, std::int64_t n);
};

const ElementwiseKernels& elementwise_kernels();

}  // namespace sdx::cpu
