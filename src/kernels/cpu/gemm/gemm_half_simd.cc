#include "kernels/cpu/gemm/gemm_half_simd.h"

#include "kernels/cpu/simd/prefetch.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/gemm_half_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

template <HalfType kType>
HWY_INLINE VF widened(const std::uint16_t* p) {
  if constexpr (kType == HalfType::bfloat16) return widened_bfloat(p);
#if HWY_TARGET <= HWY_AVX2
  const hn::Rebind<std::uint16_t, DF> d16;
  const hn::Rebind<hwy::float16_t, DF> dh;
  return hn::PromoteTo(DF(), hn::BitCast(dh, hn::LoadU(d16, p)));
#else
  return widened_half(p);
#endif
}

// Computes M rows. One row has four sets of sums, to hide the latency of multiply-adds. Weights are read once, and the hardware's
// prefetch stops at page borders, so this prefetches 4 KB ahead.
template <HalfType kType, int M>
void panel_rows(const std::uint16_t* w, std::int64_t k, const float* x, std::int64_t ldx, float* out) {
  const DF d;
  const std::int64_t lanes = lanes_f32(), nr = 2 * lanes;
  constexpr int kSets = M == 1 ? 4 : M == 2 ? 2 : 1;
  VF s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0;
  const auto step = [&](std::int64_t i, VF& a, VF& b, const float* row) HWY_ATTR {
    const VF v = hn::Set(d, row[i]);
    a = hn::MulAdd(v, widened<kType>(w + i * nr), a);
    b = hn::MulAdd(v, widened<kType>(w + i * nr + lanes), b);
  };
  std::int64_t i = 0;
  for (; i + kSets <= k; i += kSets) {
    const std::uint16_t* const now = w + i * nr;
    prefetch_after(now, 4096);
    if (kSets * nr * 2 > 64) prefetch_after(now, 4096 + 64);
    if (kSets * nr * 2 > 128) {
      prefetch_after(now, 4096 + 128);
      prefetch_after(now, 4096 + 192);
    }
    step(i, s0, t0, x);
    if constexpr (M == 1) {
      step(i + 1, s1, t1, x);
      step(i + 2, s2, t2, x);
      step(i + 3, s3, t3, x);
    } else if constexpr (M == 2) {
      step(i, s1, t1, x + ldx);
      step(i + 1, s2, t2, x);
      step(i + 1, s3, t3, x + ldx);
    } else {
      step(i, s1, t1, x + ldx);
      step(i, s2, t2, x + 2 * ldx);
      if constexpr (M == 4) step(i, s3, t3, x + 3 * ldx);
    }
  }
  for (; i < k; ++i) {
    step(i, s0, t0, x);
    if constexpr (M > 1) step(i, s1, t1, x + ldx);
    if constexpr (M > 2) step(i, s2, t2, x + 2 * ldx);
    if constexpr (M > 3) step(i, s3, t3, x + 3 * ldx);
  }
  if constexpr (M == 1) {
    s0 = hn::Add(hn::Add(s0, s1), hn::Add(s2, s3));
    t0 = hn::Add(hn::Add(t0, t1), hn::Add(t2, t3));
  } else if constexpr (M == 2) {
    s0 = hn::Add(s0, s2), t0 = hn::Add(t0, t2);
    s1 = hn::Add(s1, s3), t1 = hn::Add(t1, t3);
  }
  const auto put = [&](int row, VF a, VF b) HWY_ATTR {
    hn::StoreU(a, d, out + row * nr);
    hn::StoreU(b, d, out + row * nr + lanes);
  };
  put(0, s0, t0);
  if constexpr (M > 1) put(1, s1, t1);
  if constexpr (M > 2) put(2, s2, t2);
  if constexpr (M > 3) put(3, s3, t3);
}

template <HalfType kType>
void panel_of(const std::uint16_t* w, std::int64_t k, const float* x, std::int64_t ldx, std::int64_t m, float* out) {
  switch (m) {
    case 1: return panel_rows<kType, 1>(w, k, x, ldx, out);
    case 2: return panel_rows<kType, 2>(w, k, x, ldx, out);
    case 3: return panel_rows<kType, 3>(w, k, x, ldx, out);
    default: return panel_rows<kType, 4>(w, k, x, ldx, out);
  }
}

void panel(HalfType type, const std::uint16_t* w, std::int64_t k, const float* x, std::int64_t ldx, std::int64_t m, float* out) {
  if (type == HalfType::float16) return panel_of<HalfType::float16>(w, k, x, ldx, m, out);
  panel_of<HalfType::bfloat16>(w, k, x, ldx, m, out);
}

template <HalfType kType>
void widen_all(const std::uint16_t* x, std::int64_t n, float* y) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  for (std::int64_t i = 0; i < n; i += lanes) hn::StoreU(widened<kType>(x + i), d, y + i);
}

void widen(HalfType type, const std::uint16_t* x, std::int64_t n, float* y) {
  if (type == HalfType::float16) return widen_all<HalfType::float16>(x, n, y);
  widen_all<HalfType::bfloat16>(x, n, y);
}

}  // namespace

const HalfKernels& half_table() {
  static const HalfKernels table{panel, widen};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const HalfKernels&, half_kernels, half_table)
#endif
