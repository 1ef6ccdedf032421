#pragma once
// Gradients of softmax and of losses on it, in float, for tensors seen as [outer, axis, inner].
//
// Dense; float alignment; dx may be dy. Thread-safe, split over current_pool(); no scratch beyond the stack.

#include <cstdint>

namespace sdx::cpu {

// dx = y * (dy - sum(dy * y)); with `log`, y is the softmax's logarithm: dx = dy - exp(y) * sum(dy).
void softmax_grad_f32(const float* dy, const float* y, float* dx, std::int64_t outer, std::int64_t axis, std::int64_t inner,
                      bool log);

// The gradient of a loss with respect to the scores: (exp(log_prob) - 1 at the label) * share, for `outer * inner` samples with
// labels in [0, axis), or -1, which gives 0. share: per sample.
struct ClassLossGrad {
  const float* log_prob = nullptr;
  const std::int64_t* labels = nullptr;
  const float* shares = nullptr;
  float* dx = nullptr;
};
void class_loss_grad_f32(const ClassLossGrad& args, std::int64_t outer, std::int64_t axis, std::int64_t inner);

}  // namespace sdx::cpu
