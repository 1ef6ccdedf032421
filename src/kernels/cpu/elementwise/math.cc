#include "kernels/cpu/elementwise/math.h"

#include "kernels/cpu/elementwise/math_simd.h"

namespace sdx::cpu {
namespace {

// Minimum elements per thread: about 10 microseconds of work.
constexpr std::int64_t kGrain = 8192;

}  // namespace

void math_f32(Math op, const float* x, float* y, std::int64_t n) {
  const MathKernels& k = math_kernels();
  parallel_for(n, kGrain, [&](std::int64_t b, std::int64_t e) { k.unary(op, x + b, y + b, e - b, 1, e - b); });
}

void remainder_f32(Remainder op, const RowPlan<2>& plan, const float* a, const float* b, float* y) {
  const MathKernels& k = math_kernels();
  parallel_rows(plan, kGrain / 2, [&](const std::int64_t(&at)[2], std::int64_t out, std::int64_t n) {
    k.remainder(op, a + at[0], plan.inner_step[0], b + at[1], plan.inner_step[1], y + out, n);
  });
}

}  // namespace sdx::cpu
