#include "kernels/cpu/rows/scatter_rows.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/rows/norm_grad_simd.h"

namespace sdx::cpu {
namespace {

// Each task owns a range of the table and scans all places. That is cheap compared with its sums, and no task waits for another.
constexpr std::int64_t kMostTasks = 16;
constexpr std::int64_t kElements = 1 << 14;  // per task, at least

}  // namespace

void scatter_rows_f32(const float* x, const std::int64_t* places, std::int64_t outer, std::int64_t extent, std::int64_t count,
                      std::int64_t run, float* y) {
  if (outer <= 0 || extent <= 0 || run <= 0) return;
  const NormGradKernels& k = norm_grad_kernels();
  const std::int64_t tasks = std::clamp<std::int64_t>((extent + count) * run / kElements, 1, std::min(extent, kMostTasks));
  parallel_for(outer * tasks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t o = task / tasks, part = task % tasks;
      const std::int64_t first = extent * part / tasks, last = extent * (part + 1) / tasks;
      float* table = y + o * extent * run;
      std::fill(table + first * run, table + last * run, 0.0F);
      for (std::int64_t i = 0; i < count; ++i) {
        if (places[i] >= first && places[i] < last) k.f32.add(table + places[i] * run, x + (o * count + i) * run, run);
      }
    }
  });
}

}  // namespace sdx::cpu
