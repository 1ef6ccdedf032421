#pragma once
// Per-target row primitives of attention and recurrent cells; internal to this folder.

#include <cstdint>

namespace sdx::cpu {

struct AttentionKernels {
  // One row of scores becomes exp(score - max) with the running max and sum updated; returns the factor exp(old max - new max)
  // by which what was gathered so far must be scaled.
  float (*online_softmax)(float* scores, std::int64_t n, float* max, float* sum);
  void (*scale)(const float* x, float factor, float* y, std::int64_t n);
  void (*lstm)(const float* gates, const float* peephole, float clip, const float* c_prev, float* c, float* h,
               std::int64_t hidden);
  void (*gru)(const float* z_sum, const float* n_sum, const float* h_prev, float* h, std::int64_t hidden);
};

const AttentionKernels& attention_kernels();

}  // namespace sdx::cpu
