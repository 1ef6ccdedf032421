#include "kernels/cpu/rows/batch_norm_simd.h"

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rows/batch_norm_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

float sum(const float* x, std::int64_t n) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  VF s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    s0 = hn::Add(s0, hn::LoadU(d, x + i));
    s1 = hn::Add(s1, hn::LoadU(d, x + i + lanes));
    s2 = hn::Add(s2, hn::LoadU(d, x + i + 2 * lanes));
    s3 = hn::Add(s3, hn::LoadU(d, x + i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) s0 = hn::Add(s0, hn::LoadU(d, x + i));
  if (i < n) s1 = hn::Add(s1, load_tail(d, x + i, n - i));
  return sum_lanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
}

float spread(const float* x, float mean, std::int64_t n) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const VF m = hn::Set(d, mean);
  VF s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  const auto add = [&](VF& s, VF v) HWY_ATTR {
    const VF c = hn::Sub(v, m);
    s = hn::MulAdd(c, c, s);
  };
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    add(s0, hn::LoadU(d, x + i));
    add(s1, hn::LoadU(d, x + i + lanes));
    add(s2, hn::LoadU(d, x + i + 2 * lanes));
    add(s3, hn::LoadU(d, x + i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) add(s0, hn::LoadU(d, x + i));
  float rest = 0;
  for (; i < n; ++i) rest += (x[i] - mean) * (x[i] - mean);
  return sum_lanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))) + rest;
}

void grad_sums(const float* dy, const float* x, float mean, std::int64_t n, float* sums) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const VF m = hn::Set(d, mean);
  VF a0 = hn::Zero(d), a1 = a0, b0 = a0, b1 = a0;
  const auto add = [&](VF& a, VF& b, VF g, VF v) HWY_ATTR {
    a = hn::Add(a, g);
    b = hn::MulAdd(g, hn::Sub(v, m), b);
  };
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    add(a0, b0, hn::LoadU(d, dy + i), hn::LoadU(d, x + i));
    add(a1, b1, hn::LoadU(d, dy + i + lanes), hn::LoadU(d, x + i + lanes));
  }
  for (; i + lanes <= n; i += lanes) add(a0, b0, hn::LoadU(d, dy + i), hn::LoadU(d, x + i));
  if (i < n) add(a1, b1, load_tail(d, dy + i, n - i), load_tail(d, x + i, n - i));  // dy is 0 after the tail
  sums[0] = sum_lanes(d, hn::Add(a0, a1));
  sums[1] = sum_lanes(d, hn::Add(b0, b1));
}

void grad(const float* dy, const float* x, float mean, float a, float b, float c, float* dx, std::int64_t n) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const VF m = hn::Set(d, mean), va = hn::Set(d, a), vb = hn::Set(d, b), vc = hn::Set(d, c);
  const auto result = [&](VF g, VF v) HWY_ATTR { return hn::MulAdd(va, g, hn::MulAdd(vb, hn::Sub(v, m), vc)); };
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(result(hn::LoadU(d, dy + i), hn::LoadU(d, x + i)), d, dx + i);
  if (i < n) store_tail(result(load_tail(d, dy + i, n - i), load_tail(d, x + i, n - i)), d, dx + i, n - i);
}

}  // namespace

const BatchNormKernels& batch_norm_table() {
  static const BatchNormKernels table{sum, spread, grad_sums, grad};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const BatchNormKernels&, batch_norm_kernels, batch_norm_table)
#endif
