#include "kernels/cpu/rows/softmax_grad.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/rows/norm_grad_simd.h"
#include "kernels/cpu/rows/row_tasks.h"

namespace sdx::cpu {

void softmax_grad_f32(const float* dy, const float* y, float* dx, std::int64_t outer, std::int64_t axis, std::int64_t inner,
                      bool log) {
  if (outer <= 0 || axis <= 0 || inner <= 0) return;
  const NormGradKernels& k = norm_grad_kernels();
  if (inner == 1) {
    parallel_for(outer, grain(axis, 8192), [&](std::int64_t b, std::int64_t e) {
      for (std::int64_t i = b * axis; i < e * axis; i += axis) k.softmax_row(dy + i, y + i, dx + i, axis, log);
    });
    return;
  }
  over_columns(outer, axis, inner, 8192, [&](std::int64_t i, std::int64_t b, std::int64_t e) {
    const std::int64_t at = i * axis * inner;
    k.softmax_columns(dy + at, y + at, dx + at, axis, inner, b, e, log);
  });
}

namespace {

void sample_row(const NormGradKernels& k, const ClassLossGrad& a, std::int64_t sample, std::int64_t classes) {
  float* dx = a.dx + sample * classes;
  if (a.labels[sample] < 0) {
    std::fill_n(dx, classes, 0.0F);
    return;
  }
  k.scaled_exp(a.log_prob + sample * classes, a.shares[sample], dx, classes);
  // Not exp - 1: the label's probability may be near 1.
  const std::int64_t at = sample * classes + a.labels[sample];
  a.dx[at] = std::expm1(a.log_prob[at]) * a.shares[sample];
}

// Samples are adjacent: the classes of each are `inner` apart.
void samples_of_slice(const NormGradKernels& k, const ClassLossGrad& a, std::int64_t slice, std::int64_t classes,
                      std::int64_t inner) {
  const std::int64_t at = slice * classes * inner;
  const std::int64_t* labels = a.labels + slice * inner;
  const float* shares = a.shares + slice * inner;
  for (std::int64_t c = 0; c < classes; ++c) {
    float* dx = a.dx + at + c * inner;
    k.scaled_exp(a.log_prob + at + c * inner, 1.0F, dx, inner);
    for (std::int64_t i = 0; i < inner; ++i) dx[i] = labels[i] < 0 ? 0.0F : dx[i] * shares[i];
  }
  for (std::int64_t i = 0; i < inner; ++i) {
    if (labels[i] < 0) continue;
    const std::int64_t place = at + labels[i] * inner + i;
    a.dx[place] = std::expm1(a.log_prob[place]) * shares[i];
  }
}

}  // namespace

void class_loss_grad_f32(const ClassLossGrad& args, std::int64_t outer, std::int64_t axis, std::int64_t inner) {
  if (outer <= 0 || axis <= 0 || inner <= 0) return;
  const NormGradKernels& k = norm_grad_kernels();
  parallel_for(outer, grain(axis * inner, 8192), [&](std::int64_t b, std::int64_t e) {
    for (std::int64_t i = b; i < e; ++i) {
      if (inner == 1) {
        sample_row(k, args, i, axis);
      } else {
        samples_of_slice(k, args, i, axis, inner);
      }
    }
  });
}

}  // namespace sdx::cpu
