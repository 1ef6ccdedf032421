#pragma once
// The per-target inner kernels of gemm_half.cc; internal to this folder.

#include <cstdint>

#include "kernels/cpu/gemm/gemm_half.h"

namespace sdx::cpu {

struct HalfKernels {
  // Computes out[i * nr + j] for m in [1, 4] rows of x and one panel of nr columns, [k][nr].
  void (*panel)(HalfType type, const std::uint16_t* panel, std::int64_t k, const float* x, std::int64_t ldx, std::int64_t m,
                float* out);
  // Widens n elements; n is a multiple of nr.
  void (*widen)(HalfType type, const std::uint16_t* x, std::int64_t n, float* y);
};

const HalfKernels& half_kernels();

}  // namespace sdx::cpu
