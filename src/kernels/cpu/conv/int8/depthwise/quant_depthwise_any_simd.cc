#include "kernels/cpu/conv/int8/depthwise/quant_depthwise_any_simd.h"

#include <algorithm>
#include <type_traits>

#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/int8/depthwise/quant_depthwise_any_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/conv/int8/quant_finish-inl.h"
#include "kernels/cpu/quant/quant_epilogue-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR

constexpr std::int64_t kBlock = 16;           // channels
constexpr std::int64_t kColumn = 2 * kBlock;  // int16 in a pair of pixels
constexpr std::int64_t kMostPairs = kMostDepthwiseTaps / 2 + 1;

// Interleaves a pixel's channels of two rows.
template <class D, class V>
HWY_INLINE void store_pair(D d8, V upper, V lower, std::int16_t* out) {
  const V low = hn::InterleaveLower(d8, upper, lower), high = hn::InterleaveUpper(d8, upper, lower);
#if HWY_MAX_BYTES >= 32
  const hn::FixedTag<std::int16_t, 16> to;
  hn::StoreU(hn::PromoteTo(to, low), to, out);
  hn::StoreU(hn::PromoteTo(to, high), to, out + 16);
#else
  const hn::FixedTag<std::int16_t, 8> to;
  const hn::Half<D> half;
  hn::StoreU(hn::PromoteTo(to, hn::LowerHalf(half, low)), to, out);
  hn::StoreU(hn::PromoteTo(to, hn::UpperHalf(half, low)), to, out + 8);
  hn::StoreU(hn::PromoteTo(to, hn::LowerHalf(half, high)), to, out + 16);
  hn::StoreU(hn::PromoteTo(to, hn::UpperHalf(half, high)), to, out + 24);
#endif
}

// Widens image rows 2 * pair and 2 * pair + 1: `columns` columns from `first` on, including the padding around the image.
template <class T>
void widen_pair(const QDepthwise3& d, std::int64_t pair, std::int64_t first, std::int64_t columns, std::int16_t* out) {
  const ConvShape& s = *d.shape;
  const hn::FixedTag<T, kBlock> d8;
  alignas(16) T outside[kBlock];
  std::fill(outside, outside + kBlock, static_cast<T>(d.zero));
  const auto zero = hn::Load(d8, outside);
  const std::int64_t from = std::clamp<std::int64_t>(-first, 0, columns), stop = std::clamp(s.in[2] - first, from, columns);
  const T* at[2];
  std::int64_t step[2];
  for (std::int64_t r = 0; r < 2; ++r) {
    const std::int64_t row = 2 * pair + r;
    const bool inside = row >= 0 && row < s.in[1];
    at[r] = inside ? reinterpret_cast<const T*>(d.x) + (row * s.in[2] + first + from) * s.groups : outside;
    step[r] = inside ? s.groups : 0;
  }
  for (std::int64_t c = 0; c < from; ++c) store_pair(d8, zero, zero, out + c * kColumn);
  for (std::int64_t c = from; c < stop; ++c, at[0] += step[0], at[1] += step[1]) {
    store_pair(d8, hn::LoadU(d8, at[0]), hn::LoadU(d8, at[1]), out + c * kColumn);
  }
  for (std::int64_t c = stop; c < columns; ++c) store_pair(d8, zero, zero, out + c * kColumn);
}

// [pair of rows][tap of a row]: first for output rows whose first tap reads the upper row of a pair, then for those whose first
// tap reads the lower one.
struct Weights {
  alignas(64) std::int16_t of[2][kMostPairs * kMostDepthwiseTaps * kColumn];
};

void arrange(const QDepthwise3& d, Weights& w) {
  const hn::FixedTag<std::int16_t, 8> d16;
  const std::int64_t height = d.shape->kernel[1], width = d.shape->kernel[2];
  alignas(16) constexpr std::int16_t kNone[kBlock] = {};
  for (std::int64_t odd = 0; odd < 2; ++odd) {
    std::int16_t* to = w.of[odd];
    for (std::int64_t p = 0; p < (height + odd + 1) / 2; ++p) {
      for (std::int64_t x = 0; x < width; ++x, to += kColumn) {
        const auto row = [&](std::int64_t y) {
          return y >= 0 && y < height ? d.weights + (y * width + x) * d.weight_step : kNone;
        };
        const std::int16_t *upper = row(2 * p - odd), *lower = row(2 * p + 1 - odd);
        for (std::int64_t c = 0; c < kBlock; c += 8) {
          hn::StoreInterleaved2(hn::LoadU(d16, upper + c), hn::LoadU(d16, lower + c), d16, to + 2 * c);
        }
      }
    }
  }
}

// The operands of one output row: pairs of image rows and their weights.
struct Row {
  const std::int16_t* pairs[kMostPairs];
  std::int64_t count;
  const std::int16_t* weights;
  std::int64_t taps, tap_step, step;  // number of taps in a row; int16 from tap to tap and from pixel to pixel
};

// Computes the sums of kPixels pixels from `at` on.
template <int kPixels>
HWY_INLINE void sum_pixels(const Row& r, std::int64_t at, std::int32_t* sums) {
  const DI d;
  const D16 d16;
  const std::int64_t lanes = lanes_f32();
  for (std::int64_t c = 0; c < kBlock; c += lanes) {
    VI s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    const std::int16_t* HWY_RESTRICT w = r.weights + 2 * c;
    for (std::int64_t p = 0; p < r.count; ++p) {
      const std::int16_t* HWY_RESTRICT x = r.pairs[p] + at * r.step + 2 * c;
      for (std::int64_t t = 0; t < r.taps; ++t, w += kColumn, x += r.tap_step) {
        const V16 v = hn::LoadU(d16, w);
        s0 = pair_add(s0, hn::LoadU(d16, x), v);
        if constexpr (kPixels == 4) {
          s1 = pair_add(s1, hn::LoadU(d16, x + r.step), v);
          s2 = pair_add(s2, hn::LoadU(d16, x + 2 * r.step), v);
          s3 = pair_add(s3, hn::LoadU(d16, x + 3 * r.step), v);
        }
      }
    }
    std::int32_t* const to = sums + at * kBlock + c;
    hn::StoreU(s0, d, to);
    if constexpr (kPixels == 4) {
      hn::StoreU(s1, d, to + kBlock);
      hn::StoreU(s2, d, to + 2 * kBlock);
      hn::StoreU(s3, d, to + 3 * kBlock);
    }
  }
}

void depthwise_any(const QDepthwise3& d) {
  const ConvShape& s = *d.shape;
  Weights weights;
  arrange(d, weights);
  const std::int64_t ring = s.kernel[1] / 2 + 1, stride = s.stride[2], reach = (s.kernel[2] - 1) * s.dilation[2] + 1;
  const std::int64_t most = qdepthwise_any_columns(s);
  const auto widen = d.is_signed ? widen_pair<std::int8_t> : widen_pair<std::uint8_t>;
  Row r;
  r.taps = s.kernel[2];
  r.tap_step = s.dilation[2] * kColumn;
  r.step = stride * kColumn;
  for (std::int64_t x = 0; x < s.out[2]; x += most) {
    const std::int64_t width = std::min(most, s.out[2] - x), columns = (width - 1) * stride + reach;
    auto* const sums = reinterpret_cast<std::int32_t*>(d.pairs + ring * columns * kColumn);
    const auto slot = [&](std::int64_t pair) { return d.pairs + (pair % ring + ring) % ring * columns * kColumn; };
    std::int64_t next = floor_div(d.begin * s.stride[1] - s.pad[1], 2);  // the next pair to enter the ring
    for (std::int64_t row = d.begin; row < d.end; ++row) {
      const std::int64_t top = row * s.stride[1] - s.pad[1], pair = floor_div(top, 2), odd = top - 2 * pair;
      r.count = (s.kernel[1] + odd + 1) / 2;
      r.weights = weights.of[odd];
      for (next = std::max(next, pair); next < pair + r.count; ++next) {
        widen(d, next, x * stride - s.pad[2], columns, slot(next));
      }
      for (std::int64_t p = 0; p < r.count; ++p) r.pairs[p] = slot(pair + p);
      std::int64_t i = 0;
      for (; i + 4 <= width; i += 4) sum_pixels<4>(r, i, sums);
      for (; i < width; ++i) sum_pixels<1>(r, i, sums);
      finish_rows(*d.epilogue, sums, kBlock, width, kBlock, d.column, d.y + (row * s.out[2] + x) * s.groups, s.groups);
    }
  }
}

constexpr QDepthwise3Kernel kKernel = depthwise_any;

#else

// Without vectors, widening first gains nothing.
template <class T>
void depthwise_any(const QDepthwise3& d) {
  constexpr std::int64_t kBlock = 16, kColumns = kDepthwiseAnyBytes / (kBlock * 4);
  const ConvShape& s = *d.shape;
  auto* const sums = reinterpret_cast<std::int32_t*>(d.pairs);
  T outside[kBlock];
  std::fill(outside, outside + kBlock, static_cast<T>(d.zero));
  for (std::int64_t row = d.begin; row < d.end; ++row) {
    for (std::int64_t x = 0; x < s.out[2]; x += kColumns) {
      const std::int64_t width = std::min(kColumns, s.out[2] - x);
      for (std::int64_t i = 0; i < width; ++i) {
        std::int32_t sum[kBlock] = {};
        const std::int16_t* w = d.weights;
        for (std::int64_t ky = 0; ky < s.kernel[1]; ++ky) {
          const std::int64_t iy = row * s.stride[1] - s.pad[1] + ky;
          const bool inside = iy >= 0 && iy < s.in[1];
          for (std::int64_t kx = 0; kx < s.kernel[2]; ++kx, w += d.weight_step) {
            const std::int64_t ix = (x + i) * s.stride[2] - s.pad[2] + kx * s.dilation[2];
            const T* pixel =
                inside && ix >= 0 && ix < s.in[2] ? reinterpret_cast<const T*>(d.x) + (iy * s.in[2] + ix) * s.groups : outside;
            for (std::int64_t c = 0; c < kBlock; ++c) sum[c] += pixel[c] * w[c];
          }
        }
        std::copy(sum, sum + kBlock, sums + i * kBlock);
      }
      finish_rows(*d.epilogue, sums, kBlock, width, kBlock, d.column, d.y + (row * s.out[2] + x) * s.groups, s.groups);
    }
  }
}

void signed_or_not(const QDepthwise3& d) { d.is_signed ? depthwise_any<std::int8_t>(d) : depthwise_any<std::uint8_t>(d); }

constexpr QDepthwise3Kernel kKernel = signed_or_not;

#endif

}  // namespace

QDepthwise3Kernel qdepthwise_any_table() { return kKernel; }

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(QDepthwise3Kernel, qdepthwise_any_kernel, qdepthwise_any_table)
#endif
