#pragma once
// The per-target functions behind norm.h; internal to this folder. No threading.

#include <cstdint>

#include "kernels/cpu/rows/norm.h"

namespace sdx::cpu {

// The moments of n values. If these hardly vary around their mean, one float is too coarse for it: the mean is mean + rest.
struct RowMoments {
  float mean = 0, rest = 0;
  float variance = 0;  // of the population

  bool is_far() const { return mean * mean > 4096.0F * variance; }  // the mean is 64 deviations from zero
};

struct NormKernels {
  void (*layer_norm)(const LayerNormArgs& args, std::int64_t row, std::int64_t n);
  // y = x * scale + shift.
  void (*affine)(const float* x, float scale, float shift, float* y, std::int64_t n);
  // y[i] = x[i] * scale[i] + shift[i].
  void (*affine_columns)(const float* x, const float* scale, const float* shift, float* y, std::int64_t n);
  // y = (x - m.mean - m.rest) * scale + shift.
  void (*centred)(const float* x, const RowMoments& m, float scale, float shift, float* y, std::int64_t n);
  RowMoments (*moments)(const float* x, std::int64_t n);
  // One image: columns [begin, end) of [channels, inner].
  void (*lrn)(const float* x, float* y, std::int64_t channels, std::int64_t inner, std::int64_t begin, std::int64_t end,
              std::int64_t size, float alpha, float beta, float bias);
};

const NormKernels& norm_kernels();

}  // namespace sdx::cpu
