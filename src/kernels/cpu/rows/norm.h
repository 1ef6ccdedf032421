#pragma once
// Normalisations in float. Dense tensors, float alignment, y may be x. Thread-safe, split over current_pool(); no scratch
// beyond the stack. Statistics take two passes over a row that is in cache, with sums in four or more float lanes.

#include <cstdint>

#include "kernels/cpu/elementwise/elementwise.h"

namespace sdx::cpu {

// Over rows of `n`: y = (x - mean) / sqrt(var + epsilon) * scale + bias. scale has n values; bias may be null.
// skip (may be null): x + skip (+ skip_bias[n], may be null) is normalised instead and also written to sum_out when that is
// not null (SkipLayerNormalization). mean_out and inv_std_out (may be null): one value a row.
template <class T>
struct LayerNormArgsOf {
  const T* x = nullptr;
  const T* skip = nullptr;
  const T* skip_bias = nullptr;
  const T* scale = nullptr;
  const T* bias = nullptr;
  float epsilon = 1e-5F;
  T* y = nullptr;
  T* sum_out = nullptr;
  T* mean_out = nullptr;
  T* inv_std_out = nullptr;
  bool rms = false;  // RMSNorm: no mean subtracted, y = x / sqrt(mean(x^2) + epsilon) * scale
};
using LayerNormArgs = LayerNormArgsOf<float>;
void layer_norm_f32(const LayerNormArgs& args, std::int64_t rows, std::int64_t n);

// y[b, c, i] = act(x[b, c, i] * scale[c] + shift[c]): batch normalisation at inference with statistics folded in
// (scale = gamma / sqrt(var + epsilon), shift = beta - mean * scale).
void channel_affine_f32(const float* x, const float* scale, const float* shift, const UnarySpec& act, float* y,
                        std::int64_t batch, std::int64_t channels, std::int64_t inner);

// Over [batch, groups] slices of `channels / groups` channels of `inner` elements each: y = (x - mean) / sqrt(var + epsilon)
// * scale[c] + bias[c]. groups = channels is InstanceNormalization. scale and bias may be null (1 and 0).
void group_norm_f32(const float* x, const float* scale, const float* bias, float epsilon, float* y, std::int64_t batch,
                    std::int64_t channels, std::int64_t groups, std::int64_t inner);

// y = x / (root of the sum of squares, or sum of magnitudes, along the axis) over [outer, axis, inner]; 0 if that is 0.
void lp_norm_f32(const float* x, float* y, std::int64_t outer, std::int64_t axis, std::int64_t inner, bool squares);

// y = (x - mean) / (standard deviation + 1e-9) over [outer, groups, inner], statistics of each group over outer and inner. A
// group whose deviation is below a tenth of its mean is computed in double.
void mean_variance_norm_f32(const float* x, float* y, std::int64_t outer, std::int64_t groups, std::int64_t inner);

// Local response normalisation across channels: y = x / (bias + alpha / size * sum of squares over a window)^beta, the window
// reaching (size - 1) / 2 channels down and size / 2 up (ONNX LRN). y must not be x.
void lrn_f32(const float* x, float* y, std::int64_t batch, std::int64_t channels, std::int64_t inner, std::int64_t size,
             float alpha, float beta, float bias);

}  // namespace sdx::cpu
