#pragma once
// Multiplies rows of signed bytes by panels of quads of signed bytes on 64-bit Arm; internal to this folder and its parent.
//
// SDOT (DotProd) adds four products of bytes to each of four sums. SMMLA (I8MM) multiplies two rows of eight bytes by eight bytes
// of two columns: twice as many products. Both wrap and do not saturate (Arm ARM, SDOT and SMMLA), and both read the same panels:
// two quads of two columns, interleaved, are the eight bytes that SMMLA needs. Tiles have 8 rows and 8 columns.

#include <cstdint>

#include "kernels/cpu/conv/int8/quant_nhwc_simd.h"
#include "kernels/cpu/conv/int8/quant_quads_vnni.h"

namespace sdx::cpu {

// QQuadKernels and QNhwcKernels::quads; null if the compiler has no such instructions. They do not check whether the machine has
// SDOT, and use SMMLA if use_i8mm().
const QQuadKernels* qquad_neon_kernels();
using QRowsSums = void (*)(const QRows& t);
QRowsSums qnhwc_neon_quads();

}  // namespace sdx::cpu
