#include "kernels/cpu/conv/training/conv_grad_simd.h"

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/training/conv_grad_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

void every_second(const float* x, std::int64_t n, float* out) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  std::int64_t i = 0;
  VF even, odd;
  for (; 2 * (i + lanes) <= 2 * n - 1; i += lanes) {
    hn::LoadInterleaved2(d, x + 2 * i, even, odd);
    hn::StoreU(even, d, out + i);
  }
  for (; i < n; ++i) out[i] = x[2 * i];
}

// Up to five offsets at a time, each with one sum: loads are the limit, not the sums' latency.
template <int N>
void some_dots(const float* dy, const float* x, const std::int64_t* offsets, std::int64_t n, float* sums) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const float* const x0 = x + offsets[0];
  const float* const x1 = x + offsets[N > 1 ? 1 : 0];
  const float* const x2 = x + offsets[N > 2 ? 2 : 0];
  const float* const x3 = x + offsets[N > 3 ? 3 : 0];
  const float* const x4 = x + offsets[N > 4 ? 4 : 0];
  VF s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0, s4 = s0;
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const VF g = hn::LoadU(d, dy + i);
    s0 = hn::MulAdd(g, hn::LoadU(d, x0 + i), s0);
    if constexpr (N > 1) s1 = hn::MulAdd(g, hn::LoadU(d, x1 + i), s1);
    if constexpr (N > 2) s2 = hn::MulAdd(g, hn::LoadU(d, x2 + i), s2);
    if constexpr (N > 3) s3 = hn::MulAdd(g, hn::LoadU(d, x3 + i), s3);
    if constexpr (N > 4) s4 = hn::MulAdd(g, hn::LoadU(d, x4 + i), s4);
  }
  if (i < n) {
    const std::int64_t rest = n - i;
    const VF g = load_tail(d, dy + i, rest);
    s0 = hn::MulAdd(g, load_tail(d, x0 + i, rest), s0);
    if constexpr (N > 1) s1 = hn::MulAdd(g, load_tail(d, x1 + i, rest), s1);
    if constexpr (N > 2) s2 = hn::MulAdd(g, load_tail(d, x2 + i, rest), s2);
    if constexpr (N > 3) s3 = hn::MulAdd(g, load_tail(d, x3 + i, rest), s3);
    if constexpr (N > 4) s4 = hn::MulAdd(g, load_tail(d, x4 + i, rest), s4);
  }
  sums[0] += sum_lanes(d, s0);
  if constexpr (N > 1) sums[1] += sum_lanes(d, s1);
  if constexpr (N > 2) sums[2] += sum_lanes(d, s2);
  if constexpr (N > 3) sums[3] += sum_lanes(d, s3);
  if constexpr (N > 4) sums[4] += sum_lanes(d, s4);
}

void dots(const float* dy, const float* x, const std::int64_t* offsets, std::int64_t count, std::int64_t n, float* sums) {
  for (; count >= 5; count -= 5, offsets += 5, sums += 5) some_dots<5>(dy, x, offsets, n, sums);
  if (count == 4) some_dots<4>(dy, x, offsets, n, sums);
  if (count == 3) some_dots<3>(dy, x, offsets, n, sums);
  if (count == 2) some_dots<2>(dy, x, offsets, n, sums);
  if (count == 1) some_dots<1>(dy, x, offsets, n, sums);
}

}  // namespace

const ConvGradKernels& conv_grad_table() {
  static const ConvGradKernels table{every_second, dots};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const ConvGradKernels&, conv_grad_kernels, conv_grad_table)
#endif
