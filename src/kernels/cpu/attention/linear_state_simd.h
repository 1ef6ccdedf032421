#pragma once
// The per-target functions behind linear_state.h; internal to this folder.

#include <cstdint>

namespace sdx::cpu {

// One head of one text.
struct LinearHead {
  std::int64_t tokens, rows, columns;
  bool corrects;
  const float *q, *k, *v;  // of the first token
  std::int64_t key_row, value_row;
  const float *decay, *rate;  // of the first token
  std::int64_t gate_row;
  float skip;
  float* out;
  std::int64_t out_row;
  const float* from;  // null: zeros
  float* to;
};

struct LinearStateKernels {
  std::int64_t (*columns)();                                                    // that are computed together
  void (*head)(const LinearHead& head, std::int64_t first, std::int64_t last);  // columns
  // out = bias + the sum of weights[i] rows[i], over channels.
  void (*convolve)(const float* const* rows, std::int64_t taps, const float* weights, const float* bias, std::int64_t channels,
                   float* out);
};

const LinearStateKernels& linear_state_kernels();

}  // namespace sdx::cpu
