#pragma once
// Functions of elements, by element type: ONNX's operators for all types of numbers, and those of arrays. float32 has faster
// kernels of its own for most of them, in kernels/cpu/elementwise/.
//
// Rows are single-threaded loops over elements that lie side by side. The output may be the very same array as an operand of
// equally wide elements but must not overlap one otherwise. A boolean is a byte, true if it is not 0; results are 0 and 1.
// Integers wrap around. float16 and bfloat16 have no rows: elementwise.h computes them in float32.

#include <cstdint>

#include <sdx/dtype.hpp>

#include "base/tools_api.h"

namespace sdx::cpu {

enum class UnaryFn : std::uint8_t {
  abs,  // complex: real results
  negative,
  relu,  // x < 0 ? 0 : x; NaN stays NaN
  square,
  sign,  // NaN stays NaN; complex: x / |x|
  floor,
  ceil,
  trunc,
  round,  // half to even
  sqrt,
  rsqrt,
  reciprocal,
  exp,
  expm1,
  log,
  log2,
  log10,
  log1p,
  sin,
  cos,
  tan,
  arcsin,
  arccos,
  arctan,
  sinh,
  cosh,
  tanh,
  arcsinh,
  arccosh,
  arctanh,
  sigmoid,
  erf,
  erfinv,
  conjugate,
  real,  // of complex numbers
  imag,
  bitwise_invert,
  logical_not,  // boolean results from here on
  isnan,
  isinf,
  isfinite,
  isposinf,
  isneginf,
};

enum class BinaryFn : std::uint8_t {
  add,
  subtract,
  multiply,
  divide,            // inexact types
  truncated_divide,  // integers: any number where the divisor is 0
  floor_divide,      // integers: 0 where the divisor is 0
  remainder,         // with the divisor's sign; integers: 0 where the divisor is 0
  fmod,              // the remainder with the dividend's sign; integers: any number where the divisor is 0
  power,             // integers with a negative exponent: 1 / x, truncated; 0 for x = 0
  power_saturating,  // integers: as power, but the largest number for 0 with a negative exponent (ONNX Pow-15)
  maximum,           // NaN if either is; -0 is less than 0
  minimum,
  prelu,  // a < 0 ? a b : a
  arctan2,
  logaddexp,
  bitwise_and,
  bitwise_or,
  bitwise_xor,
  left_shift,  // by the width or more, or by a negative number: 0
  right_shift,
  equal,  // boolean results from here on
  not_equal,
  less,  // complex numbers in lexicographic order
  less_equal,
  equal_nan,  // NaN equals NaN
};

inline bool gives_bool(UnaryFn fn) { return fn >= UnaryFn::logical_not; }
inline bool gives_bool(BinaryFn fn) { return fn >= BinaryFn::equal; }

// The type of fn's results for operands of `type`: bool for predicates, real numbers for the size and the parts of complex ones.
SDX_TOOLS_API DataType result_type_of(UnaryFn fn, DataType type);
SDX_TOOLS_API DataType result_type_of(BinaryFn fn, DataType type);

using UnaryRow = void (*)(const void* x, void* y, std::int64_t n);
// Operands step by 0 or 1 elements.
using BinaryRow = void (*)(const void* a, std::int64_t a_step, const void* b, std::int64_t b_step, void* y, std::int64_t n);
using SelectRow = void (*)(const std::uint8_t* condition, std::int64_t condition_step, const void* a, std::int64_t a_step,
                           const void* b, std::int64_t b_step, void* y, std::int64_t n);

// Of real numbers; null where the type has no such function.
UnaryRow unary_row(UnaryFn fn, DataType type);
BinaryRow binary_row(BinaryFn fn, DataType type);
// condition ? a : b, for elements of 1, 2, 4, 8 or 16 bytes; null for others.
SelectRow select_row(int bytes);

// The parts of these tables: what the compiler makes vectors of (one build per instruction set), and calls of the C library.
UnaryRow plain_unary_row(UnaryFn fn, DataType type);
BinaryRow plain_binary_row(BinaryFn fn, DataType type);
UnaryRow real_math_row(UnaryFn fn, DataType type);
BinaryRow real_math_row(BinaryFn fn, DataType type);
// Of complex64 and complex128; null for others. Apart from the tables above, since ONNX's operators have no use for them.
SDX_TOOLS_API UnaryRow complex_row(UnaryFn fn, DataType type);
SDX_TOOLS_API BinaryRow complex_row(BinaryFn fn, DataType type);

}  // namespace sdx::cpu
