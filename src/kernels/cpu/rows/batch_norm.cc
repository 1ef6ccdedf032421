#include "kernels/cpu/rows/batch_norm.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/rows/batch_norm_simd.h"

namespace sdx::cpu {
namespace {

std::int64_t grain(const BatchNormSizes& s) {
  return std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, s.batch * s.inner));
}

// Calls fn(first element) for each of a channel's planes.
template <class F>
void planes(const BatchNormSizes& s, std::int64_t channel, F&& fn) {
  for (std::int64_t n = 0; n < s.batch; ++n) fn((n * s.channels + channel) * s.inner);
}

}  // namespace

void batch_moments_f32(const BatchNormSizes& s, const float* x, float* mean, float* variance) {
  const BatchNormKernels& k = batch_norm_kernels();
  const auto count = static_cast<double>(std::max<std::int64_t>(1, s.batch * s.inner));
  parallel_for(s.channels, grain(s), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; ++c) {
      double sum = 0, squares = 0;
      planes(s, c, [&](std::int64_t at) { sum += static_cast<double>(k.sum(x + at, s.inner)); });
      const double centre = sum / count;
      const auto rounded = static_cast<float>(centre);
      planes(s, c, [&](std::int64_t at) { squares += static_cast<double>(k.spread(x + at, rounded, s.inner)); });
      const double off = centre - static_cast<double>(rounded);
      mean[c] = rounded;
      variance[c] = static_cast<float>(std::max(0.0, squares / count - off * off));
    }
  });
}

void batch_norm_grad_f32(const BatchNormSizes& s, const BatchNormGradArgs& g) {
  const BatchNormKernels& k = batch_norm_kernels();
  const auto count = static_cast<double>(std::max<std::int64_t>(1, s.batch * s.inner));
  parallel_for(s.channels, grain(s), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; ++c) {
      double of_dy = 0, of_products = 0;
      planes(s, c, [&](std::int64_t at) {
        float sums[2];
        k.grad_sums(g.dy + at, g.x + at, g.mean[c], s.inner, sums);
        of_dy += static_cast<double>(sums[0]);
        of_products += static_cast<double>(sums[1]);
      });
      const auto inverse = static_cast<double>(g.inverse[c]);
      g.dbias[c] = static_cast<float>(of_dy);
      g.dscale[c] = static_cast<float>(of_products * inverse);
      const double a = static_cast<double>(g.scale[c]) * inverse;
      const double b = -a * inverse * inverse * of_products / count;
      const double shift = -a * of_dy / count;
      planes(s, c, [&](std::int64_t at) {
        k.grad(g.dy + at, g.x + at, g.mean[c], static_cast<float>(a), static_cast<float>(b), static_cast<float>(shift), g.dx + at,
               s.inner);
      });
    }
  });
}

}  // namespace sdx::cpu
