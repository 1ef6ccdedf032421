#pragma once
// Functions of real numbers by vectors, in float64; float32 is computed in float64 and rounded once.

#include "kernels/cpu/elements/functions.h"

namespace sdx::cpu {

struct VectorMath {
  UnaryRow (*unary)(UnaryFn fn, DataType type);
  BinaryRow (*binary)(BinaryFn fn, DataType type);
};

// Within 4 units in the last place in float64. Numbers for which the vectors' formulas do not hold (NaN, infinities, angles
// beyond 1000) go through real_math_row(). Null: the C library is more exact, or as fast.
const VectorMath& vector_math();

}  // namespace sdx::cpu
