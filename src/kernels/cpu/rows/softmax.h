#pragma once
// Softmax and log-softmax in float, for tensors seen as [outer, axis, inner].
//
// Dense; float alignment; y may be x itself. Thread-safe, split over current_pool(); no scratch beyond the stack. As in the
// reference, a slice with a NaN is all NaN, and so is a slice of only -inf.

#include <cstdint>

namespace sdx::cpu {

void softmax_f32(const float* x, float* y, std::int64_t outer, std::int64_t axis, std::int64_t inner);
void log_softmax_f32(const float* x, float* y, std::int64_t outer, std::int64_t axis, std::int64_t inner);

}  // namespace sdx::cpu
