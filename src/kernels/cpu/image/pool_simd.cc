#include "kernels/cpu/image/pool_simd.h"

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/image/pool_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

bool finite(const float* x, std::int64_t n) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const VF zero = hn::Zero(d);
  VF a0 = zero, a1 = zero, a2 = zero, a3 = zero;  // NaN once a value times 0 was NaN
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a0 = hn::MulAdd(hn::LoadU(d, x + i), zero, a0);
    a1 = hn::MulAdd(hn::LoadU(d, x + i + lanes), zero, a1);
    a2 = hn::MulAdd(hn::LoadU(d, x + i + 2 * lanes), zero, a2);
    a3 = hn::MulAdd(hn::LoadU(d, x + i + 3 * lanes), zero, a3);
  }
  for (; i + lanes <= n; i += lanes) a0 = hn::MulAdd(hn::LoadU(d, x + i), zero, a0);
  if (i < n) a1 = hn::MulAdd(load_tail(d, x + i, n - i), zero, a1);
  const VF all = hn::Add(hn::Add(a0, a1), hn::Add(a2, a3));
  return hn::AllTrue(d, hn::Eq(all, all));
}

template <bool kMax>
HWY_INLINE VF joined(VF a, VF b) {
  if constexpr (kMax) {
    return hn::Max(a, b);
  } else {
    return hn::Add(a, b);
  }
}

// kCount: number of rows if known at compile time, else 0: then `count`.
template <bool kMax, int kCount>
HWY_INLINE void join_rows(const float* x, const std::int64_t* offsets, std::int64_t count, float* out, std::int64_t n) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const std::int64_t rows = kCount > 0 ? kCount : count;
  const float* const first = x + offsets[0];
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    VF v = hn::LoadU(d, first + i);
#pragma GCC unroll 5
    for (std::int64_t r = 1; r < rows; ++r) v = joined<kMax>(v, hn::LoadU(d, x + offsets[r] + i));
    hn::StoreU(v, d, out + i);
  }
  if (i == n) return;
  const std::int64_t left = n - i;
  VF v = load_tail(d, first + i, left);
  for (std::int64_t r = 1; r < rows; ++r) v = joined<kMax>(v, load_tail(d, x + offsets[r] + i, left));
  store_tail(v, d, out + i, left);
}

template <bool kMax>
HWY_INLINE void join(const PoolRows& p, std::int64_t row, float* out) {
  const std::int64_t* const offsets = p.offsets + p.first[row];
  const std::int64_t count = p.first[row + 1] - p.first[row];
  switch (count) {
    case 2: return join_rows<kMax, 2>(p.x, offsets, count, out, p.width);
    case 3: return join_rows<kMax, 3>(p.x, offsets, count, out, p.width);
    case 4: return join_rows<kMax, 4>(p.x, offsets, count, out, p.width);
    case 5: return join_rows<kMax, 5>(p.x, offsets, count, out, p.width);
    default: return join_rows<kMax, 0>(p.x, offsets, count, out, p.width);
  }
}

// A vector of results i; `v` points to column i * stride of the combined row.
template <bool kMax, int kKernel, int kStride>
HWY_INLINE VF across(const float* v, std::int64_t kernel, std::int64_t dilation) {
  const DF d;
  const std::int64_t k = kKernel > 0 ? kKernel : kernel;
  if constexpr (kStride == 1) {
    VF best = hn::LoadU(d, v);
#pragma GCC unroll 5
    for (std::int64_t j = 1; j < k; ++j) best = joined<kMax>(best, hn::LoadU(d, v + j * dilation));
    return best;
  } else {
    VF even, odd;
    hn::LoadInterleaved2(d, v, even, odd);
    VF best = k > 1 ? joined<kMax>(even, odd) : even;
#pragma GCC unroll 5
    for (std::int64_t j = 2; j < k; j += 2) {
      hn::LoadInterleaved2(d, v + j, even, odd);
      best = joined<kMax>(best, even);
      if (j + 1 < k) best = joined<kMax>(best, odd);
    }
    return best;
  }
}

template <bool kMax, int kKernel, int kStride>
HWY_INLINE void join_columns(const PoolRows& p) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  for (std::int64_t r = 0; r < p.rows; ++r) {
    const float* const v = p.buffer + r * p.buffer_step;
    float* const y = p.y + r * p.columns;
    [[maybe_unused]] const float* const scale = kMax ? nullptr : p.scales[r];
    std::int64_t i = 0;
    for (; i + lanes <= p.columns; i += lanes) {
      VF sum = across<kMax, kKernel, kStride>(v + i * kStride, p.kernel, p.dilation);
      if constexpr (!kMax) sum = hn::Mul(sum, hn::LoadU(d, scale + i));
      hn::StoreU(sum, d, y + i);
    }
    if (i == p.columns) continue;
    VF sum = across<kMax, kKernel, kStride>(v + i * kStride, p.kernel, p.dilation);
    if constexpr (!kMax) sum = hn::Mul(sum, load_tail(d, scale + i, p.columns - i));
    store_tail(sum, d, y + i, p.columns - i);
  }
}

template <bool kMax>
void pool_rows(const PoolRows& p) {
  for (std::int64_t r = 0; r < p.rows; ++r) {
    float* const row = p.buffer + r * p.buffer_step + p.left;
    if (p.first[r + 1] > p.first[r]) {
      join<kMax>(p, r, row);
    } else {
      for (std::int64_t i = 0; i < p.width; ++i) row[i] = p.fill;
    }
  }
  if (p.stride == 1) {
    if (p.kernel == 3 && p.dilation == 1) return join_columns<kMax, 3, 1>(p);
    if (p.kernel == 5 && p.dilation == 1) return join_columns<kMax, 5, 1>(p);
    return join_columns<kMax, 0, 1>(p);
  }
  if (p.kernel == 2) return join_columns<kMax, 2, 2>(p);
  if (p.kernel == 3) return join_columns<kMax, 3, 2>(p);
  join_columns<kMax, 0, 2>(p);
}

}  // namespace

const PoolKernels& pool_table() {
  static const PoolKernels table{static_cast<int>(lanes_f32()), finite, pool_rows<true>, pool_rows<false>};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const PoolKernels&, pool_kernels, pool_table)
#endif
