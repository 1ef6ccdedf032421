#include "kernels/cpu/elementwise/slopes.h"

#include "base/thread_pool.h"
#include "kernels/cpu/elementwise/slopes_simd.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kGrain = 1 << 14;  // elements; fewer are not worth waking a thread

}  // namespace

void slope_f32(Slope op, float alpha, const float* dy, const float* saved, float* dx, std::int64_t n) {
  const SlopeKernels& k = slope_kernels();
  parallel_for(n, kGrain, [&](std::int64_t b, std::int64_t e) { k.slope(op, alpha, dy + b, saved + b, dx + b, e - b); });
}

void masked_f32(const float* dy, const std::uint8_t* mask, float factor, float* dx, std::int64_t n) {
  const SlopeKernels& k = slope_kernels();
  parallel_for(n, kGrain, [&](std::int64_t b, std::int64_t e) { k.masked(dy + b, mask + b, factor, dx + b, e - b); });
}

}  // namespace sdx::cpu
