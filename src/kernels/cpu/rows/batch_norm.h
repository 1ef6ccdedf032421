#pragma once
// Batch normalisation in training, over [batch, channels, inner] in float: dense, float alignment. Thread-safe, split over
// current_pool() by channels. The sums of a plane run in float lanes, those over images in double.

#include <cstdint>

namespace sdx::cpu {

struct BatchNormSizes {
  std::int64_t batch = 0, channels = 0, inner = 0;
};

// mean[c] and variance[c] (of the population) over batch and inner; 0 if there are no elements.
void batch_moments_f32(const BatchNormSizes& sizes, const float* x, float* mean, float* variance);

// With n = (x - mean) * inverse: dscale = sum of dy * n, dbias = sum of dy, and dx = scale * inverse * (dy - mean of dy - n *
// mean of dy * n). dx may be dy. scale, mean and inverse have a value for each channel.
struct BatchNormGradArgs {
  const float* dy = nullptr;
  const float* x = nullptr;
  const float* scale = nullptr;
  const float* mean = nullptr;
  const float* inverse = nullptr;
  float* dx = nullptr;
  float* dscale = nullptr;
  float* dbias = nullptr;
};
void batch_norm_grad_f32(const BatchNormSizes& sizes, const BatchNormGradArgs& args);

}  // namespace sdx::cpu
