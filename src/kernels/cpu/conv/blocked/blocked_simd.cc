#include "kernels/cpu/conv/blocked/blocked_simd.h"

#include <algorithm>
#include <type_traits>

#include "kernels/cpu/simd/target_width.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/blocked/blocked_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/conv/winograd/winograd-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

// Two vectors of weights and a broadcast leave room for so many pixels of two vectors in 16 or 32 registers; with one vector of
// output channels twice as many are more than the chains that hide an FMA's latency need.
#if SDX_512_BITS
constexpr int kBlock = 16;
constexpr int kWide = 14;
constexpr int kNarrow = 14;
#elif HWY_TARGET == HWY_NEON
constexpr int kBlock = 8;
constexpr int kWide = 12;
constexpr int kNarrow = 14;
#else
constexpr int kBlock = 8;
constexpr int kWide = 6;
constexpr int kNarrow = 12;
#endif

#define SDX_PIXELS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13)

HWY_INLINE VF finished(VF v, const float* residual, VF lo, VF hi) {
  if (residual != nullptr) v = hn::Add(v, hn::LoadU(DF(), residual));
  return clip(v, lo, hi);
}

// How far apart the pixels are, where the compiler is to know.
enum class Step : std::uint8_t { point, block, two_blocks, two, any, list, spread };

template <Step kStep>
HWY_INLINE std::int64_t step_of(const BlockedTile& t) {
  if constexpr (kStep == Step::point || kStep == Step::block || kStep == Step::list) return kBlock;
  if constexpr (kStep == Step::two_blocks) return 2 * kBlock;
  if constexpr (kStep == Step::two) return 2;
  return t.pixel_step;
}

constexpr int kSpread = std::min(kWide, 6);

// Named accumulators rather than arrays: GCC 12 spills arrays of vectors. Step::point: whole blocks of a pointwise convolution,
// whose runs are as long as the compiler knows.
template <int P, bool kTwo, Step kStep>
HWY_NOINLINE void product(const BlockedTile& t) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const std::int64_t step = step_of<kStep>(t);
  const std::int64_t width = kTwo ? 2 * lanes : lanes;
  const float* ahead = t.ahead;
  for (std::int64_t tile = 0; tile < t.tiles; ++tile) {
    const float* const first = kStep == Step::spread ? t.x : t.x + tile * P * step;
    const float* HWY_RESTRICT w = t.w;
#define SDX_DECLARE(I)   \
  VF c##I = hn::Zero(d); \
  VF e##I = hn::Zero(d); \
  (void)c##I;            \
  (void)e##I;
    SDX_PIXELS(SDX_DECLARE)
#undef SDX_DECLARE
#define SDX_PLACE(I)                         \
  [[maybe_unused]] const std::int64_t p##I = \
      P <= I ? 0 : (kStep == Step::spread ? t.places[tile * P + (P > I ? I : 0)] : I * step);
    SDX_PIXELS(SDX_PLACE)
#undef SDX_PLACE
#define SDX_STEP(I)                                     \
  if constexpr (P > I) {                                \
    const VF v = hn::Set(d, x[p##I]);                   \
    c##I = hn::MulAdd(v, w0, c##I);                     \
    if constexpr (kTwo) e##I = hn::MulAdd(v, w1, e##I); \
  }
#define SDX_ELEMENT(W)                                                    \
  {                                                                       \
    const VF w0 = hn::LoadU(d, W);                                        \
    [[maybe_unused]] const VF w1 = kTwo ? hn::LoadU(d, (W) + lanes) : w0; \
    SDX_PIXELS(SDX_STEP)                                                  \
  }
    if constexpr (kStep == Step::list) {
      std::int64_t i = 0;
      for (; i < t.run; ++i, w += width) {
        const float* HWY_RESTRICT x = first + t.list[i];
        SDX_ELEMENT(w)
      }
      // What the groups gave so far is in e.
      if (!kTwo && t.parts > 1) {
#define SDX_KEEP(I) \
  if constexpr (P > I) e##I = c##I;
        SDX_PIXELS(SDX_KEEP)
#undef SDX_KEEP
        for (std::int64_t part = 1; part < t.parts; ++part) {
#define SDX_CLEAR(I) \
  if constexpr (P > I) c##I = hn::Zero(d);
          SDX_PIXELS(SDX_CLEAR)
#undef SDX_CLEAR
          for (const std::int64_t end = i + t.run; i < end; ++i, w += width) {
            const float* HWY_RESTRICT x = first + t.list[i];
            SDX_ELEMENT(w)
          }
          const auto before = hn::FirstN(d, static_cast<std::size_t>(t.lane + (part - 1) * t.lane_step));
#define SDX_JOIN(I) \
  if constexpr (P > I) e##I = hn::IfThenElse(before, e##I, c##I);
          SDX_PIXELS(SDX_JOIN)
#undef SDX_JOIN
        }
#define SDX_TAKE(I) \
  if constexpr (P > I) c##I = e##I;
        SDX_PIXELS(SDX_TAKE)
#undef SDX_TAKE
      }
    }
    const std::int64_t whole = kStep == Step::list ? 0 : t.blocks;
    const std::int64_t blocks = kStep == Step::list ? 0 : whole + (t.tail_run > 0 ? 1 : 0);
    for (std::int64_t b = 0; b < blocks; ++b) {
      if (ahead < t.ahead_end) {
        for (std::int64_t i = 0; i < t.ahead_lines; ++i, ahead += 16) __builtin_prefetch(ahead, 0, 2);
      }
      if constexpr (kStep == Step::point) {
        const float* HWY_RESTRICT x = first + b * t.block_step;
        // The next block lies a plane further, where no prefetcher looks.
        __builtin_prefetch(x + t.block_step);
        if constexpr (P > 2) __builtin_prefetch(x + t.block_step + 2 * kBlock);
        if constexpr (P > 4) __builtin_prefetch(x + t.block_step + 4 * kBlock);
        if (b < whole) {
          for (int i = 0; i < kBlock; i += 2) {
            SDX_ELEMENT(w)
            ++x;
            SDX_ELEMENT(w + width)
            ++x;
            w += 2 * width;
          }
        } else {
          for (const float* const end = x + t.tail_run; x < end; ++x, w += width) SDX_ELEMENT(w)
        }
      } else {
        const std::int64_t taps = b < whole ? t.taps : t.tail_taps;
        const std::int64_t run = b < whole ? t.run : t.tail_run;
        for (std::int64_t r = 0; r < t.rows; ++r) {
          for (std::int64_t q = 0; q < taps; ++q) {
            const float* HWY_RESTRICT x = first + b * t.block_step + r * t.row_step + q * t.tap_step;
            const float* const end = x + run;
            __builtin_prefetch(x + t.block_step);
            if constexpr (P > 2 && kStep < Step::any) __builtin_prefetch(x + t.block_step + 2 * step);
            if constexpr (P > 4 && kStep < Step::any) __builtin_prefetch(x + t.block_step + 4 * step);
            for (; x + 2 <= end; ++x) {
              SDX_ELEMENT(w)
              ++x;
              SDX_ELEMENT(w + width)
              w += 2 * width;
            }
            if (x < end) {
              SDX_ELEMENT(w)
              w += width;
            }
          }
        }
      }
    }
#undef SDX_ELEMENT
#undef SDX_STEP
    // The bias last, like everybody else: sums that start from a large one lose bits.
    const VF bias0 = hn::LoadU(d, t.bias);
    [[maybe_unused]] const VF bias1 = kTwo ? hn::LoadU(d, t.bias + lanes) : bias0;
    const VF lo = hn::Set(d, t.lo), hi = hn::Set(d, t.hi);
    const std::int64_t at = tile * P * kBlock;
    const float* r0 = t.residual[0] != nullptr ? t.residual[0] + at : nullptr;
    [[maybe_unused]] const float* r1 = t.residual[1] != nullptr ? t.residual[1] + at : nullptr;
    float* y0 = t.y[0] + at;
    [[maybe_unused]] float* y1 = kTwo ? t.y[1] + at : nullptr;
#define SDX_STORE(I)                                                                                                     \
  if constexpr (P > I) {                                                                                                 \
    hn::StoreU(finished(hn::Add(c##I, bias0), r0 != nullptr ? r0 + I * kBlock : nullptr, lo, hi), d, y0 + I * kBlock);   \
    if constexpr (kTwo)                                                                                                  \
      hn::StoreU(finished(hn::Add(e##I, bias1), r1 != nullptr ? r1 + I * kBlock : nullptr, lo, hi), d, y1 + I * kBlock); \
  }
    SDX_PIXELS(SDX_STORE)
#undef SDX_STORE
  }
}

template <int P>
HWY_INLINE void product_of(const BlockedTile& t) {
  const bool point = t.rows == 1 && t.taps == 1 && t.run == kBlock && t.tail_taps <= 1;
  if (t.wide) {
    if constexpr (P <= kWide) {
      if (t.list != nullptr) return product<P, true, Step::list>(t);
      if constexpr (P <= kSpread) {
        if (t.places != nullptr) return product<P, true, Step::spread>(t);
      }
      if (t.pixel_step == kBlock) return point ? product<P, true, Step::point>(t) : product<P, true, Step::block>(t);
      if (t.pixel_step == 2 * kBlock) return product<P, true, Step::two_blocks>(t);
      if (t.pixel_step == 2) return product<P, true, Step::two>(t);
      product<P, true, Step::any>(t);
    }
  } else if constexpr (P <= kNarrow) {
    if (t.list != nullptr) return product<P, false, Step::list>(t);
    if (t.pixel_step == kBlock && point) return product<P, false, Step::point>(t);
    product<P, false, Step::any>(t);
  }
}

void tile(const BlockedTile& t) {
  switch (t.pixels) {
#define SDX_CASE(I) \
  case I + 1: return product_of<I + 1>(t);
    SDX_PIXELS(SDX_CASE)
#undef SDX_CASE
    default: return;
  }
}
#undef SDX_PIXELS

// P <= 4 neighbouring outputs of one vector of channels. x and w: the first of `rows` rows of taps. The chains of 9 to 49
// multiplications overlap with those of the outputs that follow; what neighbours share the compiler keeps in registers. The first
// output's window begins kLeft taps before the row, the last one's ends kRight behind it.
template <int K, int S, int P, int kLeft = 0, int kRight = 0>
HWY_INLINE void depthwise_outputs(const float* x, std::int64_t row_step, const float* w, std::int64_t rows, VF bias, VF lo, VF hi,
                                  float* y) {
  const DF d;
  VF a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0;
  for (std::int64_t ky = 0; ky < rows; ++ky, x += row_step, w += K * kBlock) {
#pragma GCC unroll 7
    for (int kx = 0; kx < K; ++kx) {
      const VF wv = hn::LoadU(d, w + kx * kBlock);
      const auto add = [&](int i, VF& sum) HWY_ATTR {
        if (kx < kLeft - i * S || kx >= K - std::max(0, kRight - (P - 1 - i) * S)) return;
        sum = hn::MulAdd(wv, hn::LoadU(d, x + (kx + i * S) * kBlock), sum);
      };
      add(0, a0);
      if constexpr (P > 1) add(1, a1);
      if constexpr (P > 2) add(2, a2);
      if constexpr (P > 3) add(3, a3);
    }
  }
  hn::StoreU(clip(hn::Add(a0, bias), lo, hi), d, y);
  if constexpr (P > 1) hn::StoreU(clip(hn::Add(a1, bias), lo, hi), d, y + kBlock);
  if constexpr (P > 2) hn::StoreU(clip(hn::Add(a2, bias), lo, hi), d, y + 2 * kBlock);
  if constexpr (P > 3) hn::StoreU(clip(hn::Add(a3, bias), lo, hi), d, y + 3 * kBlock);
}

// One vector of channels in one row of outputs.
struct DepthwiseRow {
  const float* x;  // the first tap of output 0, which may lie before the row
  std::int64_t row_step;
  const float* w;
  std::int64_t rows;
  VF bias, lo, hi;
  float* y;
};

template <int K, int S, int P, int kLeft = 0, int kRight = 0>
HWY_INLINE void depthwise_at(const DepthwiseRow& r, std::int64_t i) {
  depthwise_outputs<K, S, P, kLeft, kRight>(r.x + i * S * kBlock, r.row_step, r.w, r.rows, r.bias, r.lo, r.hi, r.y + i * kBlock);
}

// The last outputs [i, i + count), count <= 4.
template <int K, int S, int kRight = 0>
HWY_INLINE void depthwise_last(const DepthwiseRow& r, std::int64_t i, std::int64_t count) {
  switch (count) {
    case 4: return depthwise_at<K, S, 4, 0, kRight>(r, i);
    case 3: return depthwise_at<K, S, 3, 0, kRight>(r, i);
    case 2: return depthwise_at<K, S, 2, 0, kRight>(r, i);
    case 1: return depthwise_at<K, S, 1, 0, kRight>(r, i);
    default: return;
  }
}

template <int K, int S>
void depthwise_rows(const DepthwiseBand& b) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const std::int64_t row_step = b.in_columns * kBlock;
  // Taps that the first and the last output lack; up to half a window is what padding usually makes them.
  const std::int64_t left = b.pad_column, right = (b.columns - 1) * S - b.pad_column + K - b.in_columns;
  const bool quick_left = left >= 1 && left <= K / 2 && b.inner_begin <= 4 && b.inner_end >= 4;
  for (std::int64_t v = 0; v < kBlock; v += lanes) {
    DepthwiseRow r;
    r.row_step = row_step;
    r.bias = hn::LoadU(d, b.bias + v);
    r.lo = hn::Set(d, b.lo), r.hi = hn::Set(d, b.hi);
    r.y = b.y + v;
    for (std::int64_t oy = b.first; oy < b.last; ++oy, r.y += b.columns * kBlock) {
      const std::int64_t iy = oy * S - b.pad_row;
      const std::int64_t top = std::max<std::int64_t>(0, -iy);
      r.rows = std::max<std::int64_t>(0, std::min<std::int64_t>(K, b.in_rows - iy) - top);
      const float* const row = r.rows > 0 ? b.x + (iy + top) * row_step + v : b.x;
      r.x = row - b.pad_column * kBlock;
      r.w = b.w + (r.rows > 0 ? top : 0) * K * kBlock + v;
      // Outputs whose windows reach over an end of the rows.
      const auto edge = [&](std::int64_t from, std::int64_t to) HWY_ATTR {
        for (std::int64_t ox = from; ox < to; ++ox) {
          const std::int64_t ix = ox * S - b.pad_column;
          const std::int64_t begin = std::max<std::int64_t>(0, -ix), end = std::min<std::int64_t>(K, b.in_columns - ix);
          VF sum = hn::Zero(d);
          for (std::int64_t ky = 0; ky < r.rows; ++ky) {
            const float* const x = row + ky * row_step;
            for (std::int64_t kx = begin; kx < end; ++kx) {
              sum = hn::MulAdd(hn::LoadU(d, r.w + (ky * K + kx) * kBlock), hn::LoadU(d, x + (ix + kx) * kBlock), sum);
            }
          }
          hn::StoreU(clip(hn::Add(sum, r.bias), r.lo, r.hi), d, r.y + ox * kBlock);
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

void depthwise_band(const DepthwiseBand& b) {
  if (b.kernel == 3) return b.stride == 1 ? depthwise_rows<3, 1>(b) : depthwise_rows<3, 2>(b);
  if (b.kernel == 5) return b.stride == 1 ? depthwise_rows<5, 1>(b) : depthwise_rows<5, 2>(b);
  return b.stride == 1 ? depthwise_rows<7, 1>(b) : depthwise_rows<7, 2>(b);
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

// What x86's max returns where an operand is NaN depends on their order: the sum of all elements tells whether one is (or
// infinities of both signs, at no harm), and additions have pipes of their own.
HWY_INLINE void max_and_sum(VF v, VF& best, VF& sum) {
  best = hn::Max(best, v);
  sum = hn::Add(sum, v);
}

// Windows of kRows x kColumns neighbours without a NaN; false: there may be one.
template <int kRows, int kColumns>
bool window_max_of(const float* x, std::int64_t step, std::int64_t row_step, float* y, std::int64_t count) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  VF all = hn::Zero(d);  // NaN once a sum was
  for (std::int64_t v = 0; v < kBlock; v += lanes) {
    const float* p = x + v;
    for (std::int64_t i = 0; i < count; ++i, p += step) {
      VF best = hn::LoadU(d, p), sum = best;
      // In chains of a row each, which overlap.
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

void scale(const float* x, const float* s, float* y, std::int64_t pixels) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  for (std::int64_t v = 0; v < kBlock; v += lanes) {
    const VF f = hn::LoadU(d, s + v);
    for (std::int64_t i = v; i < pixels * kBlock; i += kBlock) hn::StoreU(hn::Mul(hn::LoadU(d, x + i), f), d, y + i);
  }
}

void shift(const float* x, const float* s, float* y, std::int64_t pixels) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  for (std::int64_t v = 0; v < kBlock; v += lanes) {
    const VF f = hn::LoadU(d, s + v);
    for (std::int64_t i = v; i < pixels * kBlock; i += kBlock) hn::StoreU(hn::Add(hn::LoadU(d, x + i), f), d, y + i);
  }
}

void affine(const float* x, const float* s, const float* b, float lo, float hi, float* y, std::int64_t pixels) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const VF l = hn::Set(d, lo), h = hn::Set(d, hi);
  for (std::int64_t v = 0; v < kBlock; v += lanes) {
    const VF f = hn::LoadU(d, s + v), t = hn::LoadU(d, b + v);
    for (std::int64_t i = v; i < pixels * kBlock; i += kBlock) {
      hn::StoreU(clip(hn::MulAdd(hn::LoadU(d, x + i), f, t), l, h), d, y + i);
    }
  }
}

void add_clip(const float* x, const float* residual, float lo, float hi, float* y, std::int64_t n) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const VF l = hn::Set(d, lo), h = hn::Set(d, hi);
  for (std::int64_t i = 0; i < n; i += lanes) {
    hn::StoreU(clip(hn::Add(hn::LoadU(d, x + i), hn::LoadU(d, residual + i)), l, h), d, y + i);
  }
}

// f(V) for the number of outputs along an axis, 1 to T. kWhole: it is T, as in most tiles, whose loops are then of known length.
template <int T, bool kWhole, class F>
HWY_INLINE void with_outputs(std::int64_t outputs, const F& f) {
  if constexpr (kWhole) {
    f(std::integral_constant<int, T>());
  } else {
    if constexpr (T == 4) {
      if (outputs == 4) return f(std::integral_constant<int, 4>());
      if (outputs == 3) return f(std::integral_constant<int, 3>());
    }
    if (outputs == 2) return f(std::integral_constant<int, 2>());
    f(std::integral_constant<int, 1>());
  }
}

template <int T, bool kWhole>
void input_tile(const WinogradTile& w) {
  constexpr int kIn = T + 2;
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const int rows = kWhole ? kIn : static_cast<int>(w.rows) + 2, columns = kWhole ? kIn : static_cast<int>(w.columns) + 2;
  HWY_ALIGN float half[kIn * kIn * kMaxF32Lanes];  // B^T d, [row][column]
  HWY_ALIGN float edge[kIn * kIn * kBlock];
  const float* x = w.x;
  std::int64_t step = w.row_step;
  if (w.row0 > 0 || w.row1 < rows || w.column0 > 0 || w.column1 < columns) {
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < columns; ++c) {
        const bool inside = r >= w.row0 && r < w.row1 && c >= w.column0 && c < w.column1;
        for (std::int64_t v = 0; v < kBlock; v += lanes) {
          const VF value = inside ? hn::LoadU(d, w.x + r * w.row_step + c * kBlock + v) : hn::Zero(d);
          hn::Store(value, d, edge + (r * kIn + c) * kBlock + v);
        }
      }
    }
    x = edge;
    step = kIn * kBlock;
  }
  for (std::int64_t v = 0; v < kBlock; v += lanes) {
    with_outputs<T, kWhole>(w.rows, [&](auto n) HWY_ATTR {
      for (int c = 0; c < columns; ++c) forward<T, n>(x + c * kBlock + v, step, half + c * lanes, kIn * lanes);
    });
    with_outputs<T, kWhole>(w.columns, [&](auto n) HWY_ATTR {
      for (int r = 0; r < kIn; ++r) {
        if (r >= rows - 1 && r < kIn - 1) continue;  // a point that the tile does without
        forward<T, n>(half + r * kIn * lanes, lanes, w.v + r * kIn * w.e_step + v, w.e_step);
      }
    });
  }
}

void winograd_input(int t, const WinogradTile& w) {
  const bool whole = w.rows == t && w.columns == t;
  if (t == 2) return whole ? input_tile<2, true>(w) : input_tile<2, false>(w);
  whole ? input_tile<4, true>(w) : input_tile<4, false>(w);
}

template <int T, bool kWhole>
void output_tile(const WinogradTile& w) {
  constexpr int kIn = T + 2;
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const VF lo = hn::Set(d, w.lo), hi = hn::Set(d, w.hi);
  HWY_ALIGN float half[T * kIn * kMaxF32Lanes];  // A^T m, [row][column]
  for (std::int64_t v = 0; v < kBlock; v += lanes) {
    with_outputs<T, kWhole>(w.rows, [&](auto n) HWY_ATTR {
      for (int c = 0; c < kIn; ++c) {
        if (!kWhole && c > w.columns && c < kIn - 1) continue;
        VF column[n + 2];
        VF result[n];
        for (int r = 0; r < n + 2; ++r) {
          column[r] = hn::LoadU(d, w.v + (winograd_element<T, n>(r) * kIn + c) * w.e_step + v);
        }
        backward<T, n>(column, result);
        for (int r = 0; r < n; ++r) hn::Store(result[r], d, half + (r * kIn + c) * lanes);
      }
    });
    const VF bias = hn::LoadU(d, w.bias + v);
    with_outputs<T, kWhole>(w.columns, [&](auto n) HWY_ATTR {
      for (int r = 0; r < (kWhole ? T : w.rows); ++r) {
        VF row[n + 2];
        VF y[n];
        for (int c = 0; c < n + 2; ++c) row[c] = hn::Load(d, half + (r * kIn + winograd_element<T, n>(c)) * lanes);
        backward<T, n>(row, y);
        const std::int64_t at = r * w.y_step + v;
        for (int c = 0; c < n; ++c) {
          const float* z = w.residual != nullptr ? w.residual + at + c * kBlock : nullptr;
          hn::StoreU(finished(hn::Add(y[c], bias), z, lo, hi), d, w.y + at + c * kBlock);
        }
      }
    });
  }
}

void winograd_output(int t, const WinogradTile& w) {
  const bool whole = w.rows == t && w.columns == t;
  if (t == 2) return whole ? output_tile<2, true>(w) : output_tile<2, false>(w);
  whole ? output_tile<4, true>(w) : output_tile<4, false>(w);
}

template <int kQuarters>
void lrn_loop(const BlockedLrn& n, float* squares) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const std::int64_t blocks = (n.channels + kBlock - 1) / kBlock;
  const std::int64_t down = (n.size - 1) / 2, stride = blocks * kBlock + n.size;
  for (std::int64_t b = 0; b < blocks; ++b) {
    for (std::int64_t i = 0; i < n.pixels * kBlock; i += lanes) {
      const VF v = hn::LoadU(d, n.x + b * n.plane + i);
      hn::StoreU(hn::Mul(v, v), d, squares + i / kBlock * stride + down + b * kBlock + i % kBlock);
    }
  }
  for (std::int64_t p = 0; p < n.pixels; ++p) {
    std::fill_n(squares + p * stride, down, 0.0F);
    std::fill(squares + p * stride + down + n.channels, squares + (p + 1) * stride, 0.0F);
  }
  const VF alpha = hn::Set(d, n.alpha), bias = hn::Set(d, n.bias), beta = hn::Set(d, n.beta);
  for (std::int64_t b = 0; b < blocks; ++b) {
    for (std::int64_t i = 0; i < n.pixels * kBlock; i += lanes) {
      const float* const window = squares + i / kBlock * stride + b * kBlock + i % kBlock;
      VF sum = hn::LoadU(d, window);
      for (std::int64_t k = 1; k < n.size; ++k) sum = hn::Add(sum, hn::LoadU(d, window + k));
      const VF factor = inverse_power<kQuarters>(hn::MulAdd(alpha, sum, bias), beta);
      hn::StoreU(hn::Mul(hn::LoadU(d, n.x + b * n.plane + i), factor), d, n.y + b * n.plane + i);
    }
  }
}

void lrn(const BlockedLrn& n, float* squares) {
  if (n.beta == 0.75F) return lrn_loop<3>(n, squares);
  if (n.beta == 0.5F) return lrn_loop<2>(n, squares);
  if (n.beta == 1.0F) return lrn_loop<4>(n, squares);
  lrn_loop<0>(n, squares);
}

// Rows 2 I + 1 and 2 I + 2 of the transformed filter at `g`, whose taps lie `width` apart.
template <int T, int I>
HWY_INLINE void weight_rows(const float* g, std::int64_t width, float* out) {
  const DF d;
  const auto column = [&](int i) HWY_ATTR {
    return expand<T, I>(hn::LoadU(d, g + i * width), hn::LoadU(d, g + (3 + i) * width), hn::LoadU(d, g + (6 + i) * width));
  };
  const Twins a = column(0), b = column(1), c = column(2);
  float* const row = out + (2 * I + 1) * (T + 2) * kWinogradStep;
  expand_row<T>(a.plus, b.plus, c.plus, row, kWinogradStep);
  expand_row<T>(a.minus, b.minus, c.minus, row + (T + 2) * kWinogradStep, kWinogradStep);
}

template <int T>
void weight_tiles(const float* g, std::int64_t channels, std::int64_t width, float* out) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  for (std::int64_t c = 0; c < channels; ++c, g += 9 * width, out += width) {
    for (std::int64_t v = 0; v < width; v += lanes) {
      const auto at = [&](int k) HWY_ATTR { return hn::LoadU(d, g + k * width + v); };
      expand_row<T>(at(0), at(1), at(2), out + v, kWinogradStep);
      weight_rows<T, 0>(g + v, width, out + v);
      if constexpr (T == 4) weight_rows<T, 1>(g + v, width, out + v);
      expand_row<T>(at(6), at(7), at(8), out + v + (T + 1) * (T + 2) * kWinogradStep, kWinogradStep);
    }
  }
}

void winograd_weights(int t, const float* g, std::int64_t channels, std::int64_t width, float* out) {
  t == 2 ? weight_tiles<2>(g, channels, width, out) : weight_tiles<4>(g, channels, width, out);
}

// Pieces of kMeanPixels in two chains each: the error grows with the pieces' number, not the pixels'.
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

// to: null, or where the elements are copied.
template <bool kCopy>
HWY_INLINE bool is_tame(const float* x, std::int64_t n, float* to) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  // 0, or not a number once an element's product with 2^28 was none.
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

const BlockedKernels* blocked_table() {
  static const BlockedKernels table{static_cast<int>(lanes_f32()),
                                    kBlock,
                                    kWide,
                                    kNarrow,
                                    kSpread,
                                    tile,
                                    depthwise_band,
                                    depthwise_pixel,
                                    window_max,
                                    window_sum,
                                    scale,
                                    shift,
                                    affine,
                                    add_clip,
                                    winograd_input,
                                    winograd_output,
                                    lrn,
                                    winograd_weights,
                                    mean,
                                    tame,
                                    copy_tame};
  return &table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

namespace sdx::cpu {

const BlockedKernels& blocked_kernels() { return *SDX_CPU_PICK(blocked_table)(); }

}  // namespace sdx::cpu
#endif
