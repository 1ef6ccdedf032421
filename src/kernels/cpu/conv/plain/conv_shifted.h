#pragma once
// Convolutions of rows (Conv1d) as products whose right operand is read in place; internal to this folder.

#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/gemm_simd.h"

namespace sdx::cpu {

// Whether a group's product is computed faster this way than from gathered patches.
bool conv_is_shifted(const ConvShape& shape);

// gemm_block() for the group's image `x`. Each channel's row is copied once, with zeros around it, and every tap of its windows
// reads the copy at another offset. Gathering patches copies it once for each tap, which is a fifth of the time of a product
// with 64 rows.
void shifted_block(const GemmKernels& kernels, const ConvShape& shape, const float* x, const GemmArgs& args, std::int64_t m0,
                   std::int64_t m1, std::int64_t n0, std::int64_t n1);

}  // namespace sdx::cpu
