#pragma once
// The operator behind all transforms: one axis, any length, real or complex at either end.

#include <cstdint>

#include "ops/op.h"

namespace sdx::array::detail {

// What a transform of n numbers makes of its input, whose axis is cut, or filled with zeros, to what it needs.
enum class Fourier : std::int64_t {
  complex,          // complex to complex
  half,             // real to the first n / 2 + 1 complex numbers, exp(-...)
  half_doubled,     // the same; all but the first, and the last of an even length, times 2: the adjoint of `whole`
  whole,            // the first n / 2 + 1 complex numbers to n real ones, exp(+...)
  real_of_complex,  // complex to the real parts, exp(+...): the adjoint of `half`
};
enum class FourierNorm : std::int64_t { none, by_length, by_root };

// Attribute "ints": Fourier, n, axis, whether exp(+...), FourierNorm. The result's extent is the type's: more is cut, less
// filled.
void run_fourier(ops::OpContext& c);

}  // namespace sdx::array::detail
