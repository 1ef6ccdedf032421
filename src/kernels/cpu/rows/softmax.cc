#include "kernels/cpu/rows/softmax.h"

#include "kernels/cpu/rows/row_tasks.h"
#include "kernels/cpu/rows/softmax_simd.h"

namespace sdx::cpu {
namespace {

void any_softmax(const float* x, float* y, std::int64_t outer, std::int64_t axis, std::int64_t inner, bool log) {
  if (outer <= 0 || axis <= 0 || inner <= 0) return;
  const SoftmaxKernels& k = softmax_kernels();
  if (inner == 1) {
    parallel_for(outer, grain(axis, 8192),
                 [&](std::int64_t b, std::int64_t e) { k.rows(x + b * axis, y + b * axis, e - b, axis, log); });
    return;
  }
  over_columns(outer, axis, inner, 8192, [&](std::int64_t i, std::int64_t b, std::int64_t e) {
    k.columns(x + i * axis * inner, y + i * axis * inner, axis, inner, b, e, log);
  });
}

}  // namespace

void softmax_f32(const float* x, float* y, std::int64_t outer, std::int64_t axis, std::int64_t inner) {
  any_softmax(x, y, outer, axis, inner, false);
}

void log_softmax_f32(const float* x, float* y, std::int64_t outer, std::int64_t axis, std::int64_t inner) {
  any_softmax(x, y, outer, axis, inner, true);
}

}  // namespace sdx::cpu
