#pragma once
// The per-target functions behind slopes.h; internal to this folder. No threading.

#include <cstdint>

#include "kernels/cpu/elementwise/slopes.h"

namespace sdx::cpu {

struct SlopeKernels {
  void (*slope)(Slope op, float alpha, const float* dy, const float* saved, float* dx, std::int64_t n);
  void (*masked)(const float* dy, const std::uint8_t* mask, float factor, float* dx, std::int64_t n);
};

const SlopeKernels& slope_kernels();

}  // namespace sdx::cpu
