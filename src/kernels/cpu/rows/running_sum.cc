#include "kernels/cpu/rows/running_sum.h"

#include "base/thread_pool.h"
#include "kernels/cpu/rows/row_tasks.h"
#include "kernels/cpu/rows/running_sum_simd.h"

namespace sdx::cpu {

void running_sum_f32(const RunningSum& s, const float* x, float* y) {
  if (s.outer <= 0 || s.axis <= 0 || s.inner <= 0) return;
  constexpr std::int64_t kElements = 16384;
  const RunningSumKernels& k = running_sum_kernels();
  const std::int64_t slice = s.axis * s.inner, start = s.reverse ? (s.axis - 1) * s.inner : 0;
  const std::int64_t step = s.reverse ? -s.inner : s.inner;
  if (s.inner == 1) {
    parallel_for(s.outer, grain(s.axis, kElements), [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t at = begin * slice + start;
      k.lanes({x + at, y + at, step, s.axis, s.exclusive}, end - begin, slice);
    });
    return;
  }
  over_columns(s.outer, s.axis, s.inner, kElements, [&](std::int64_t i, std::int64_t begin, std::int64_t end) {
    const std::int64_t at = i * slice + start + begin;
    k.columns({x + at, y + at, step, s.axis, s.exclusive}, end - begin);
  });
}

}  // namespace sdx::cpu
