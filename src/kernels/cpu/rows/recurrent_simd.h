#pragma once
// The per-target functions behind recurrent.h; internal to this folder.

#include <cstdint>

namespace sdx::cpu {

struct RecurrentKernels {
  void (*lstm)(const float* gates, const float* peephole, float clip, const float* c_prev, float* c, float* h,
               std::int64_t hidden);
  void (*gru)(const float* z_sum, const float* n_sum, const float* h_prev, float* h, std::int64_t hidden);
};

const RecurrentKernels& recurrent_kernels();

}  // namespace sdx::cpu
