#include "kernels/cpu/conv/blocked/blocked_pool_simd.h"

#include <algorithm>

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/blocked/blocked_pool_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/conv/blocked/blocked-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

// If an operand is NaN, the result of x86's max depends on their order: the sum of all elements tells whether one is (or
// infinities of both signs, which does no harm), and additions have separate pipes.
HWY_INLINE void max_and_sum(VF v, VF& best, VF& sum) {
  best = hn::Max(best, v);
  sum = hn::Add(sum, v);
}

// Windows of kRows x kColumns adjacent pixels without a NaN; false: there may be one.
template <int kRows, int kColumns>
bool window_max_of(const float* x, std::int64_t step, std::int64_t row_step, float* y, std::int64_t count) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  VF all = hn::Zero(d);  // NaN once a sum was not finite
  for (std::int64_t v = 0; v < kBlock; v += lanes) {
    const float* p = x + v;
    for (std::int64_t i = 0; i < count; ++i, p += step) {
      VF best = hn::LoadU(d, p), sum = best;
      // One chain per row: chains overlap.
#pragma GCC unroll 3
      for (int c = 1; c < kColumns; ++c) max_and_sum(hn::LoadU(d, p + c * kBlock), best, sum);
#pragma GCC unroll 3
      for (int r = 1; r < kRows; ++r) {
        VF row_best = hn::LoadU(d, p + r * row_step), row_sum = row_best;
#pragma GCC unroll 3
        for (int c = 1; c < kColumns; ++c) max_and_sum(hn::LoadU(d, p + r * row_step + c * kBlock), row_best, row_sum);
        best = hn::Max(best, row_best);
        sum = hn::Add(sum, row_sum);
      }
      all = hn::Add(all, hn::Sub(sum, sum));
      hn::StoreU(best, d, y + i * kBlock + v);
    }
  }
  return hn::AllTrue(d, hn::Eq(all, all));
}

void window_max(const float* x, std::int64_t step, std::int64_t rows, std::int64_t columns, std::int64_t row_step,
                std::int64_t tap_step, float* y, std::int64_t count) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  if (tap_step == kBlock && rows == 3 && columns == 3 && window_max_of<3, 3>(x, step, row_step, y, count)) return;
  if (tap_step == kBlock && rows == 2 && columns == 3 && window_max_of<2, 3>(x, step, row_step, y, count)) return;
  if (tap_step == kBlock && rows == 2 && columns == 2 && window_max_of<2, 2>(x, step, row_step, y, count)) return;
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t v = 0; v < kBlock; v += lanes) {
      VF best = hn::Neg(hn::Inf(d));
      for (std::int64_t r = 0; r < rows; ++r) {
        const float* p = x + i * step + r * row_step + v;
        for (std::int64_t c = 0; c < columns; ++c) best = max_nan(best, hn::LoadU(d, p + c * tap_step));
      }
      hn::StoreU(best, d, y + i * kBlock + v);
    }
  }
}

void window_sum(const float* x, std::int64_t step, std::int64_t rows, std::int64_t columns, std::int64_t row_step,
                std::int64_t tap_step, float factor, float* y, std::int64_t count) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const VF f = hn::Set(d, factor);
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t v = 0; v < kBlock; v += lanes) {
      VF sum = hn::Zero(d);
      for (std::int64_t r = 0; r < rows; ++r) {
        const float* p = x + i * step + r * row_step + v;
        for (std::int64_t c = 0; c < columns; ++c) sum = hn::Add(sum, hn::LoadU(d, p + c * tap_step));
      }
      hn::StoreU(hn::Mul(sum, f), d, y + i * kBlock + v);
    }
  }
}

// Pieces of kMeanPixels in two chains each: the error grows with the number of pieces, not of pixels.
void mean(const float* x, float factor, float* y, std::int64_t pixels) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  for (std::int64_t v = 0; v < kBlock; v += lanes) {
    VF total = hn::Zero(d);
    for (std::int64_t p0 = 0; p0 < pixels; p0 += kMeanPixels) {
      const std::int64_t end = std::min(pixels, p0 + kMeanPixels);
      VF a = hn::Zero(d), b = hn::Zero(d);
      std::int64_t p = p0;
      for (; p + 2 <= end; p += 2) {
        a = hn::Add(a, hn::LoadU(d, x + p * kBlock + v));
        b = hn::Add(b, hn::LoadU(d, x + (p + 1) * kBlock + v));
      }
      if (p < end) a = hn::Add(a, hn::LoadU(d, x + p * kBlock + v));
      total = hn::Add(total, hn::Add(a, b));
    }
    hn::StoreU(hn::Mul(total, hn::Set(d, factor)), d, y + v);
  }
}

}  // namespace

const BlockedPoolKernels& blocked_pool_table() {
  static const BlockedPoolKernels table{window_max, window_sum, mean};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const BlockedPoolKernels&, blocked_pool_kernels, blocked_pool_table)
#endif
