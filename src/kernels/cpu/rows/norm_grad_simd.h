#pragma once
// The per-target functions behind norm_grad.h and softmax_grad.h; internal to this folder. No threading.

#include <cstdint>

#include "kernels/cpu/rows/norm_grad.h"

namespace sdx::cpu {

template <class T>
struct LayerNormGradKernels {
  // dx of one row; the row's part of the parameters' gradients is added to dscale and dbias.
  void (*row)(const LayerNormGradArgs<T>& args, std::int64_t row, std::int64_t n, T* dscale, T* dbias);
  void (*add)(T* y, const T* x, std::int64_t n);  // y += x
};

struct NormGradKernels {
  LayerNormGradKernels<float> f32;
  LayerNormGradKernels<double> f64;
  // One row of a softmax: dx = y * (dy - sum(dy * y)); of its logarithm y: dx = dy - exp(y) * sum(dy).
  void (*softmax_row)(const float* dy, const float* y, float* dx, std::int64_t n, bool log);
  // The same of [axis, inner] at columns [begin, end).
  void (*softmax_columns)(const float* dy, const float* y, float* dx, std::int64_t axis, std::int64_t inner, std::int64_t begin,
                          std::int64_t end, bool log);
  // dx = exp(y) * factor, y <= 0.
  void (*scaled_exp)(const float* y, float factor, float* dx, std::int64_t n);
};

const NormGradKernels& norm_grad_kernels();

}  // namespace sdx::cpu
