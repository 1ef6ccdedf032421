#pragma once
// NBitsDigitKernels for 64-bit Arm; internal to this folder.
//
// SDOT (DotProd) multiplies the codes of four columns by four digits of a row. SMMLA (I8MM) multiplies those of two columns by
// eight digits of each of two lines; a line is one digit of one row. It is used from eight lines on.

#include "kernels/cpu/nbits/nbits_digits_simd.h"

namespace sdx::cpu {

// Null if the compiler has no such instructions. The kernels do not check whether the machine has SDOT, and use SMMLA if
// use_i8mm().
const NBitsDigitKernels* nbits_neon_kernels();

}  // namespace sdx::cpu
