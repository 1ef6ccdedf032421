#include "kernels/cpu/conv/blocked/tiled/blocked_direct_simd.h"

#include <algorithm>

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/blocked/tiled/blocked_direct_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/conv/blocked/blocked-inl.h"
#include "kernels/cpu/conv/winograd/winograd-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

// The tile's input with zeros in the padding, to [side][side][c].
void copy_input(const ImageTile& w, int side, std::int64_t rows, std::int64_t columns, float* to) {
  const DF d;
  for (std::int64_t r = w.row0; r < std::min(rows, w.row1); ++r) {
    for (std::int64_t c = w.column0; c < std::min(columns, w.column1); ++c) {
      for (std::int64_t v = 0; v < kBlock; v += lanes_f32()) {
        hn::Store(hn::LoadU(d, w.x + r * w.row_step + c * kBlock + v), d, to + (r * side + c) * kBlock + v);
      }
    }
  }
}

void load_taps(const PackedFilters& f, const float* at, float* taps) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  if (f.t == 0) {
    for (int k = 0; k < 9; ++k) hn::Store(hn::LoadU(d, at + k * f.step), d, taps + k * lanes);
    return;
  }
  const int side = f.t + 2;
  taps_of(
      f.t, [&](int r, int c) HWY_ATTR { return hn::LoadU(d, at + (r * side + c) * f.step); },
      [&](int k, VF v) HWY_ATTR { hn::Store(v, d, taps + k * lanes); });
}

template <int T, int S>
void sums_of(const ImageTile& w, const PackedFilters& f, std::int64_t channels, bool begin, float* sums) {
  constexpr int kSide = (T - 1) * S + 3;
  const DF d;
  const std::int64_t lanes = lanes_f32();
  HWY_ALIGN float x[kSide * kSide * kBlock] = {};
  HWY_ALIGN float taps[9 * kMaxF32Lanes];
  copy_input(w, kSide, (w.rows - 1) * S + 3, (w.columns - 1) * S + 3, x);
  if (begin) std::fill_n(sums, T * T * lanes, 0.0F);
  for (std::int64_t i = 0; i < channels; ++i) {
    load_taps(f, f.w + i * f.channel_step, taps);
    for (int o = 0; o < T * T; ++o) {
      const float* const window = x + (o / T * S * kSide + o % T * S) * kBlock + i;
      VF sum = hn::LoadU(d, sums + o * lanes);
      for (int k = 0; k < 9; ++k) {
        sum = hn::MulAdd(hn::Set(d, window[(k / 3 * kSide + k % 3) * kBlock]), hn::Load(d, taps + k * lanes), sum);
      }
      hn::StoreU(sum, d, sums + o * lanes);
    }
  }
}

void direct_sums(int t, int stride, const ImageTile& w, const PackedFilters& f, std::int64_t channels, bool begin, float* sums) {
  if (stride == 2) return sums_of<4, 2>(w, f, channels, begin, sums);
  t == 2 ? sums_of<2, 1>(w, f, channels, begin, sums) : sums_of<4, 1>(w, f, channels, begin, sums);
}

void direct_output(int t, const ImageTile& w, const float* sums, std::int64_t offset) {
  const DF d;
  const VF lo = hn::Set(d, w.lo), hi = hn::Set(d, w.hi), bias = hn::LoadU(d, w.bias + offset);
  for (std::int64_t r = 0; r < w.rows; ++r) {
    for (std::int64_t c = 0; c < w.columns; ++c) {
      const std::int64_t at = r * w.y_step + c * kBlock + offset;
      const VF sum = hn::LoadU(d, sums + (r * t + c) * lanes_f32());
      hn::StoreU(finished(hn::Add(sum, bias), w.residual != nullptr ? w.residual + at : nullptr, lo, hi), d, w.y + at);
    }
  }
}

// Lane by lane. Lanes beyond the channels may hold anything.
HWY_INLINE VF squares_of(const float* x, std::int64_t block_step, std::int64_t whole, std::int64_t rest) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  VF sum = hn::Zero(d), other = sum;
  for (std::int64_t b = 0; b < whole; ++b, x += block_step) {
    for (std::int64_t v = 0; v < kBlock; v += lanes) {
      const VF value = hn::LoadU(d, x + v);
      if (v % (2 * lanes) == 0) {
        sum = hn::MulAdd(value, value, sum);
      } else {
        other = hn::MulAdd(value, value, other);
      }
    }
  }
  for (std::int64_t v = 0; v < rest; v += lanes) {
    const VF value = load_floats(x + v, rest - v);
    sum = hn::MulAdd(value, value, sum);
  }
  return hn::Add(sum, other);
}

#if HWY_TARGET == HWY_SCALAR
constexpr int kPixelsTogether = 1;
[[maybe_unused]] HWY_INLINE VF add_pairs(VF a, VF) { return a; }
#else
constexpr int kPixelsTogether = static_cast<int>(hn::MaxLanes(DF()));
HWY_INLINE VF add_pairs(VF a, VF b) { return hn::Add(hn::ConcatEven(DF(), b, a), hn::ConcatOdd(DF(), b, a)); }
#endif

// Of kPixels pixels, a power of two up to the number of lanes, each of which has equally many partial sums in the result. Halves
// are added up as soon as they are known, so that few registers hold them.
template <int kPixels>
HWY_INLINE VF partial_squares(const float* x, std::int64_t block_step, std::int64_t whole, std::int64_t rest) {
  if constexpr (kPixels == 1) {
    return squares_of(x, block_step, whole, rest);
  } else {
    constexpr int kHalf = kPixels / 2;
    const VF first = partial_squares<kHalf>(x, block_step, whole, rest);
    return add_pairs(first, partial_squares<kHalf>(x + kHalf * kBlock, block_step, whole, rest));
  }
}

// A sum over the lanes of each pixel's vector alone would take longer than the squares of 16 channels.
void pixel_squares(const float* x, std::int64_t block_step, std::int64_t channels, std::int64_t pixels, float* squares) {
  const DF d;
  const std::int64_t whole = channels / kBlock, rest = channels % kBlock;
  std::int64_t p = 0;
  for (; lanes_f32() == kPixelsTogether && p + kPixelsTogether <= pixels; p += kPixelsTogether) {
    hn::StoreU(partial_squares<kPixelsTogether>(x + p * kBlock, block_step, whole, rest), d, squares + p);
  }
  for (; p < pixels; ++p) squares[p] = sum_lanes(d, squares_of(x + p * kBlock, block_step, whole, rest));
}

}  // namespace

const BlockedDirectKernels& blocked_direct_table() {
  static const BlockedDirectKernels table{direct_sums, direct_output, pixel_squares};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const BlockedDirectKernels&, blocked_direct_kernels, blocked_direct_table)
#endif
