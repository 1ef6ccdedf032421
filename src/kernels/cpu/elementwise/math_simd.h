#pragma once
// The functions of math.h for one instruction set; single-threaded ranges. Other kernels use them as well.

#include <cstdint>

#include "kernels/cpu/elementwise/math.h"

namespace sdx::cpu {

struct MathKernels {
  // Over `rows` rows of n, ld apart.
  void (*unary)(Math op, const float* x, float* y, std::int64_t ld, std::int64_t rows, std::int64_t n);
  // n >= 1; the operands step by 0 or 1.
  void (*remainder)(Remainder op, const float* a, std::int64_t a_step, const float* b, std::int64_t b_step, float* y,
                    std::int64_t n);
};

const MathKernels& math_kernels();

}  // namespace sdx::cpu
