#include "kernels/cpu/conv/blocked/blocked_depthwise_simd.h"

#include <algorithm>
#include <type_traits>

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/blocked/blocked_depthwise_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/conv/blocked/blocked-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

// P <= 4 neighbouring outputs of one vector of channels. x and w: the first of `rows` rows of taps. The chains of 9 to 49
// multiplications overlap with those of the outputs that follow; the compiler keeps what neighbours share in registers. The first
// output's window begins kLeft taps before the row, the last one's ends kRight taps after it. Pixels are `step` floats apart.
template <int K, int S, int P, int kLeft = 0, int kRight = 0, class Step>
HWY_INLINE void depthwise_outputs(const float* x, std::int64_t row_step, const float* w, std::int64_t rows, VF bias, VF lo, VF hi,
                                  float* y, Step step) {
  const DF d;
  VF a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0;
  for (std::int64_t ky = 0; ky < rows; ++ky, x += row_step, w += K * kBlock) {
#pragma GCC unroll 7
    for (int kx = 0; kx < K; ++kx) {
      const VF wv = hn::LoadU(d, w + kx * kBlock);
      const auto add = [&](int i, VF& sum) HWY_ATTR {
        if (kx < kLeft - i * S || kx >= K - std::max(0, kRight - (P - 1 - i) * S)) return;
        sum = hn::MulAdd(wv, hn::LoadU(d, x + (kx + i * S) * step), sum);
      };
      add(0, a0);
      if constexpr (P > 1) add(1, a1);
      if constexpr (P > 2) add(2, a2);
      if constexpr (P > 3) add(3, a3);
    }
  }
  hn::StoreU(clip(hn::Add(a0, bias), lo, hi), d, y);
  if constexpr (P > 1) hn::StoreU(clip(hn::Add(a1, bias), lo, hi), d, y + step);
  if constexpr (P > 2) hn::StoreU(clip(hn::Add(a2, bias), lo, hi), d, y + 2 * step);
  if constexpr (P > 3) hn::StoreU(clip(hn::Add(a3, bias), lo, hi), d, y + 3 * step);
}

// The distance of pixels: known when the kernel is compiled, unless they are those of a dilated convolution.
using NoGap = std::integral_constant<std::int64_t, kBlock>;

// One vector of channels in one row of outputs.
template <class Step>
struct DepthwiseRow {
  const float* x;  // the first tap of output 0, which may be before the row
  std::int64_t row_step;
  const float* w;
  std::int64_t rows;
  VF bias, lo, hi;
  float* y;
  Step step;
};

template <int K, int S, int P, int kLeft = 0, int kRight = 0, class Step>
HWY_INLINE void depthwise_at(const DepthwiseRow<Step>& r, std::int64_t i) {
  depthwise_outputs<K, S, P, kLeft, kRight>(r.x + i * S * r.step, r.row_step, r.w, r.rows, r.bias, r.lo, r.hi, r.y + i * r.step,
                                            r.step);
}

// The last outputs [i, i + count), count <= 4.
template <int K, int S, int kRight = 0, class Step>
HWY_INLINE void depthwise_last(const DepthwiseRow<Step>& r, std::int64_t i, std::int64_t count) {
  switch (count) {
    case 4: return depthwise_at<K, S, 4, 0, kRight>(r, i);
    case 3: return depthwise_at<K, S, 3, 0, kRight>(r, i);
    case 2: return depthwise_at<K, S, 2, 0, kRight>(r, i);
    case 1: return depthwise_at<K, S, 1, 0, kRight>(r, i);
    default: return;
  }
}

template <int K, int S, class Step>
void depthwise_rows(const DepthwiseBand& b, Step step) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const std::int64_t row_step = b.row_step;
  // Taps that the first and the last output lack; usual padding makes them at most half a window.
  const std::int64_t left = b.pad_column, right = (b.columns - 1) * S - b.pad_column + K - b.in_columns;
  const bool quick_left = left >= 1 && left <= K / 2 && b.inner_begin <= 4 && b.inner_end >= 4;
  for (std::int64_t v = 0; v < kBlock; v += lanes) {
    DepthwiseRow<Step> r;
    r.step = step;
    r.row_step = row_step;
    r.bias = hn::LoadU(d, b.bias + v);
    r.lo = hn::Set(d, b.lo), r.hi = hn::Set(d, b.hi);
    r.y = b.y + v;
    for (std::int64_t oy = 0; oy < b.rows; ++oy, r.y += b.y_step) {
      const std::int64_t iy = oy * S - b.pad_row;
      const std::int64_t top = std::max<std::int64_t>(0, -iy);
      r.rows = std::max<std::int64_t>(0, std::min<std::int64_t>(K, b.in_rows - iy) - top);
      const float* const row = r.rows > 0 ? b.x + (iy + top) * row_step + v : b.x;
      r.x = row - b.pad_column * step;
      r.w = b.w + (r.rows > 0 ? top : 0) * K * kBlock + v;
      // Outputs whose windows extend past an end of the rows.
      const auto edge = [&](std::int64_t from, std::int64_t to) HWY_ATTR {
        for (std::int64_t ox = from; ox < to; ++ox) {
          const std::int64_t ix = ox * S - b.pad_column;
          const std::int64_t begin = std::max<std::int64_t>(0, -ix), end = std::min<std::int64_t>(K, b.in_columns - ix);
          VF sum = hn::Zero(d);
          for (std::int64_t ky = 0; ky < r.rows; ++ky) {
            const float* const x = row + ky * row_step;
            for (std::int64_t kx = begin; kx < end; ++kx) {
              sum = hn::MulAdd(hn::LoadU(d, r.w + (ky * K + kx) * kBlock), hn::LoadU(d, x + (ix + kx) * step), sum);
            }
          }
          hn::StoreU(clip(hn::Add(sum, r.bias), r.lo, r.hi), d, r.y + ox * step);
        }
      };
      std::int64_t i = b.inner_begin;
      if (quick_left) {
        left == 1 ? depthwise_at<K, S, 4, 1>(r, 0)
                  : (left == 2 ? depthwise_at<K, S, 4, std::min(2, K / 2)>(r, 0) : depthwise_at<K, S, 4, K / 2>(r, 0));
        i = 4;
      } else {
        edge(0, b.inner_begin);
      }
      for (; i + 4 <= b.inner_end; i += 4) depthwise_at<K, S, 4>(r, i);
      const std::int64_t over = b.columns - b.inner_end;
      const bool quick_right = right >= 1 && right <= K / 2 && over <= 4;
      if (!quick_right || b.columns - i > 4) {
        depthwise_last<K, S>(r, i, b.inner_end - i);
        i = std::max(i, b.inner_end);
      }
      if (quick_right) {
        right == 1 ? depthwise_last<K, S, 1>(r, i, b.columns - i)
                   : (right == 2 ? depthwise_last<K, S, std::min(2, K / 2)>(r, i, b.columns - i)
                                 : depthwise_last<K, S, K / 2>(r, i, b.columns - i));
      } else {
        edge(i, b.columns);
      }
    }
  }
}

template <int K>
void depthwise_square(const DepthwiseBand& b) {
  if (b.stride == 2) return depthwise_rows<K, 2>(b, NoGap());
  b.step == kBlock ? depthwise_rows<K, 1>(b, NoGap()) : depthwise_rows<K, 1>(b, b.step);
}

void depthwise_band(const DepthwiseBand& b) {
  if (b.kernel == 3) return depthwise_square<3>(b);
  if (b.kernel == 5) return depthwise_square<5>(b);
  depthwise_square<7>(b);
}

void depthwise_pixel(const DepthwisePixel& p) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  for (std::int64_t v = 0; v < kBlock; v += lanes) {
    VF a = hn::Zero(d), b = a;
    for (std::int64_t i = 0; i < p.rows; ++i) {
      const float* x = p.x + i * p.row_step + v;
      const float* w = p.w + i * p.w_row + v;
      std::int64_t j = 0;
      for (; j + 2 <= p.columns; j += 2) {
        a = hn::MulAdd(hn::LoadU(d, w + j * kBlock), hn::LoadU(d, x + j * p.tap_step), a);
        b = hn::MulAdd(hn::LoadU(d, w + (j + 1) * kBlock), hn::LoadU(d, x + (j + 1) * p.tap_step), b);
      }
      if (j < p.columns) a = hn::MulAdd(hn::LoadU(d, w + j * kBlock), hn::LoadU(d, x + j * p.tap_step), a);
    }
    hn::StoreU(clip(hn::Add(hn::Add(a, b), hn::LoadU(d, p.bias + v)), hn::Set(d, p.lo), hn::Set(d, p.hi)), d, p.y + v);
  }
}

}  // namespace

const BlockedDepthwiseKernels& blocked_depthwise_table() {
  static const BlockedDepthwiseKernels table{depthwise_band, depthwise_pixel};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const BlockedDepthwiseKernels&, blocked_depthwise_kernels, blocked_depthwise_table)
#endif
