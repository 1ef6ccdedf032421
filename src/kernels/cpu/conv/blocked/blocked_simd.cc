#include "kernels/cpu/conv/blocked/blocked_simd.h"

#include <algorithm>

#include "kernels/cpu/simd/repeat.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/blocked/blocked_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/conv/blocked/blocked-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

// With one vector of output channels, twice as many pixels would be more chains than are needed to hide an FMA's latency.
constexpr int kWide = kTileRows;
constexpr int kNarrow = std::min(14, 2 * kTileRows);

// The distance between pixels, if known at compile time.
enum class Step : std::uint8_t { point, block, two_blocks, two, any, spread };

template <Step kStep>
HWY_INLINE std::int64_t step_of(const BlockedTile& t) {
  if constexpr (kStep == Step::point || kStep == Step::block) return kBlock;
  if constexpr (kStep == Step::two_blocks) return 2 * kBlock;
  if constexpr (kStep == Step::two) return 2;
  return t.pixel_step;
}

constexpr int kSpread = std::min(kWide, 6);

#define SDX_DECLARE(I)   \
  VF c##I = hn::Zero(d); \
  VF e##I = hn::Zero(d); \
  (void)c##I;            \
  (void)e##I;
#define SDX_PLACE(I)                         \
  [[maybe_unused]] const std::int64_t p##I = \
      P <= I ? 0 : (kStep == Step::spread ? t.places[tile * P + (P > I ? I : 0)] : I * step);
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
    SDX_REPEAT_14(SDX_STEP)                                               \
  }
#define SDX_KEEP(I) \
  if constexpr (P > I) e##I = c##I;
#define SDX_CLEAR(I) \
  if constexpr (P > I) c##I = hn::Zero(d);
#define SDX_JOIN(I) \
  if constexpr (P > I) e##I = hn::IfThenElse(before, e##I, c##I);
#define SDX_TAKE(I) \
  if constexpr (P > I) c##I = e##I;
// The bias is added last, as everywhere: sums that start from a large bias lose bits.
#define SDX_OUTPUT                                                                            \
  const VF bias0 = hn::LoadU(d, t.bias);                                                      \
  [[maybe_unused]] const VF bias1 = kTwo ? hn::LoadU(d, t.bias + lanes) : bias0;              \
  const VF lo = hn::Set(d, t.lo), hi = hn::Set(d, t.hi);                                      \
  const std::int64_t at = tile * P * kBlock;                                                  \
  const float* r0 = t.residual[0] != nullptr ? t.residual[0] + at : nullptr;                  \
  [[maybe_unused]] const float* r1 = t.residual[1] != nullptr ? t.residual[1] + at : nullptr; \
  float* y0 = t.y[0] + at;                                                                    \
  [[maybe_unused]] float* y1 = kTwo ? t.y[1] + at : nullptr;
#define SDX_STORE(I)                                                                                                     \
  if constexpr (P > I) {                                                                                                 \
    hn::StoreU(finished(hn::Add(c##I, bias0), r0 != nullptr ? r0 + I * kBlock : nullptr, lo, hi), d, y0 + I * kBlock);   \
    if constexpr (kTwo)                                                                                                  \
      hn::StoreU(finished(hn::Add(e##I, bias1), r1 != nullptr ? r1 + I * kBlock : nullptr, lo, hi), d, y1 + I * kBlock); \
  }

// Accumulators are named, because GCC 12 spills arrays of vectors. Step::point: whole blocks of a pointwise convolution, whose
// runs have a length known at compile time.
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
    SDX_REPEAT_14(SDX_DECLARE)
    SDX_REPEAT_14(SDX_PLACE)  // NOLINT(bugprone-branch-clone): the first place is 0 in both
    const std::int64_t whole = t.blocks;
    const std::int64_t blocks = whole + (t.tail_run > 0 ? 1 : 0);
    for (std::int64_t b = 0; b < blocks; ++b) {
      if (ahead < t.ahead_end) {
        for (std::int64_t i = 0; i < t.ahead_lines; ++i, ahead += 16) __builtin_prefetch(ahead, 0, 2);
      }
      if constexpr (kStep == Step::point) {
        const float* HWY_RESTRICT x = first + b * t.block_step;
        // The next block is one plane further, out of reach of prefetchers.
        __builtin_prefetch(x + t.block_step);
        if constexpr (P > 2) __builtin_prefetch(x + t.block_step + 2 * kBlock);
        if constexpr (P > 4) __builtin_prefetch(x + t.block_step + 4 * kBlock);
        const std::int64_t unit = (b < whole ? kBlock : t.tail_run) * width;
        w += t.skip_before * unit;
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
        w += (t.skip_row + t.skip_after) * unit;
      } else {
        const std::int64_t taps = b < whole ? t.taps : t.tail_taps;
        const std::int64_t run = b < whole ? t.run : t.tail_run;
        const std::int64_t unit = (b < whole ? t.tap_weights : t.tail_run) * width;
        w += t.skip_before * unit;
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
          w += t.skip_row * unit;
        }
        w += t.skip_after * unit;
      }
    }
    SDX_OUTPUT
    SDX_REPEAT_14(SDX_STORE)
  }
}

// Tiles with lists.
template <int P, bool kTwo>
HWY_NOINLINE void listed(const BlockedTile& t) {
  constexpr Step kStep = Step::block;
  const DF d;
  const std::int64_t lanes = lanes_f32(), step = kBlock, width = kTwo ? 2 * lanes : lanes;
  for (std::int64_t tile = 0; tile < t.tiles; ++tile) {
    const float* const first = t.x + tile * P * step;
    const float* HWY_RESTRICT w = t.w;
    SDX_REPEAT_14(SDX_DECLARE)
    SDX_REPEAT_14(SDX_PLACE)  // NOLINT(bugprone-branch-clone): the first place is 0 in both
    std::int64_t i = 0;
    for (; i < t.run; ++i, w += width) {
      const float* HWY_RESTRICT x = first + t.list[i];
      SDX_ELEMENT(w)
    }
    // e holds the sums of the groups so far.
    if (!kTwo && t.parts > 1) {
      SDX_REPEAT_14(SDX_KEEP)
      for (std::int64_t part = 1; part < t.parts; ++part) {
        SDX_REPEAT_14(SDX_CLEAR)
        for (const std::int64_t end = i + t.run; i < end; ++i, w += width) {
          const float* HWY_RESTRICT x = first + t.list[i];
          SDX_ELEMENT(w)
        }
        const auto before = hn::FirstN(d, static_cast<std::size_t>(t.lane + (part - 1) * t.lane_step));
        SDX_REPEAT_14(SDX_JOIN)
      }
      SDX_REPEAT_14(SDX_TAKE)
    }
    SDX_OUTPUT
    SDX_REPEAT_14(SDX_STORE)
  }
}
#undef SDX_STORE
#undef SDX_OUTPUT
#undef SDX_TAKE
#undef SDX_JOIN
#undef SDX_CLEAR
#undef SDX_KEEP
#undef SDX_ELEMENT
#undef SDX_STEP
#undef SDX_PLACE
#undef SDX_DECLARE

template <int P>
HWY_INLINE void product_of(const BlockedTile& t) {
  const bool point = t.rows == 1 && t.taps == 1 && t.run == kBlock && t.tail_taps <= 1;
  if (t.wide) {
    if constexpr (P <= kWide) {
      if (t.list != nullptr) return listed<P, true>(t);
      if constexpr (P <= kSpread) {
        if (t.places != nullptr) return product<P, true, Step::spread>(t);
      }
      if (t.pixel_step == kBlock) return point ? product<P, true, Step::point>(t) : product<P, true, Step::block>(t);
      if (t.pixel_step == 2 * kBlock) return product<P, true, Step::two_blocks>(t);
      if (t.pixel_step == 2) return product<P, true, Step::two>(t);
      product<P, true, Step::any>(t);
    }
  } else if constexpr (P <= kNarrow) {
    if (t.list != nullptr) return listed<P, false>(t);
    if (t.pixel_step == kBlock && point) return product<P, false, Step::point>(t);
    product<P, false, Step::any>(t);
  }
}

void tile(const BlockedTile& t) {
  switch (t.pixels) {
#define SDX_CASE(I) \
  case I + 1: return product_of<I + 1>(t);
    SDX_REPEAT_14(SDX_CASE)
#undef SDX_CASE
    default: return;
  }
}

}  // namespace

const BlockedKernels& blocked_table() {
  static const BlockedKernels table{static_cast<int>(lanes_f32()), kBlock, kWide, kNarrow, kSpread, tile};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const BlockedKernels&, blocked_kernels, blocked_table)
#endif
