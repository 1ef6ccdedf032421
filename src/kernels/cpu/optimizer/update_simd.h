#pragma once
// The per-target functions behind update.h; internal to this folder. No threading.

#include <cstdint>

#include "kernels/cpu/optimizer/update.h"

namespace sdx::cpu {

struct UpdateKernels {
  // Elements [begin, end) of one parameter.
  void (*update)(const UpdateRule& rule, const UpdateSlice& slice, std::int64_t begin, std::int64_t end);
  void (*accumulate)(const float* from, float* to, std::int64_t n);
  double (*sum_of_squares)(const float* x, std::int64_t n);
};

const UpdateKernels& update_kernels();

}  // namespace sdx::cpu
