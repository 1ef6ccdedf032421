#include "kernels/cpu/conv/blocked/blocked_joined_simd.h"

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/blocked/blocked_joined_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

// to: null, or where to copy the elements.
template <bool kCopy>
HWY_INLINE bool is_tame(const float* x, std::int64_t n, float* to) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  // 0, or NaN once an element times 2^28 was not finite.
  const VF zero = hn::Zero(d), large = hn::Set(d, 0x1p28F);
  VF a = zero, b = zero;
  const auto at = [&](std::int64_t i) HWY_ATTR {
    const VF v = hn::LoadU(d, x + i);
    if constexpr (kCopy) hn::StoreU(v, d, to + i);
    return hn::Mul(v, large);
  };
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    a = hn::MulAdd(at(i), zero, a);
    b = hn::MulAdd(at(i + lanes), zero, b);
  }
  if (i < n) a = hn::MulAdd(at(i), zero, a);
  const VF all = hn::Add(a, b);
  return hn::AllTrue(d, hn::Eq(all, all));
}

bool tame(const float* x, std::int64_t n) { return is_tame<false>(x, n, nullptr); }
bool copy_tame(const float* x, std::int64_t n, float* to) { return is_tame<true>(x, n, to); }

}  // namespace

const BlockedJoinedKernels& blocked_joined_table() {
  static const BlockedJoinedKernels table{tame, copy_tame};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const BlockedJoinedKernels&, blocked_joined_kernels, blocked_joined_table)
#endif
