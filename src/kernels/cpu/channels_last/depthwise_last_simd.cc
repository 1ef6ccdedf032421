#include "kernels/cpu/channels_last/depthwise_last_simd.h"

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/channels_last/depthwise_last_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

// One vector of channels from `c` on; the last one of a pixel may be a part, of `left` channels. K > 0: so many taps in a row,
// and outputs that move by one tap: the compiler then loads once what neighbours share.
template <int K, int P, bool kPart>
HWY_INLINE void vector_of_pixels(const LastPixels& p, std::int64_t c, std::int64_t left) {
  const DF d;
  const auto load = [&](const float* from) HWY_ATTR {
    if constexpr (kPart) return load_tail(d, from, left);
    return hn::LoadU(d, from);
  };
  VF a0 = p.bias != nullptr ? load(p.bias + c) : hn::Zero(d), a1 = a0, a2 = a0, a3 = a0;
  const float* row = p.x + c;
  const float* w_row = p.w + c;
  const std::int64_t tap = p.tap_step, pixel = K > 0 ? tap : p.pixel_step;
  const auto taps = [&](const float* x, const float* w) HWY_ATTR {
    const VF wv = load(w);
    a0 = hn::MulAdd(wv, load(x), a0);
    if constexpr (P > 1) a1 = hn::MulAdd(wv, load(x + pixel), a1);
    if constexpr (P > 2) a2 = hn::MulAdd(wv, load(x + 2 * pixel), a2);
    if constexpr (P > 3) a3 = hn::MulAdd(wv, load(x + 3 * pixel), a3);
  };
  for (std::int64_t ky = 0; ky < p.rows; ++ky, row += p.row_step, w_row += p.w_row) {
    if constexpr (K > 0) {
#pragma GCC unroll 7
      for (int kx = 0; kx < K; ++kx) taps(row + kx * tap, w_row + kx * p.channels);
    } else {
      for (std::int64_t kx = 0; kx < p.columns; ++kx) taps(row + kx * tap, w_row + kx * p.channels);
    }
  }
  const VF lo = hn::Set(d, p.lo), hi = hn::Set(d, p.hi);
  const auto store = [&](VF sum, std::int64_t i) HWY_ATTR {
    const std::int64_t at = i * p.channels + c;
    if (p.residual != nullptr) sum = hn::Add(sum, load(p.residual + at));
    sum = clip(sum, lo, hi);
    if constexpr (kPart) return store_tail(sum, d, p.y + at, left);
    hn::StoreU(sum, d, p.y + at);
  };
  store(a0, 0);
  if constexpr (P > 1) store(a1, 1);
  if constexpr (P > 2) store(a2, 2);
  if constexpr (P > 3) store(a3, 3);
}

template <int K, int P>
void all_channels(const LastPixels& args) {
  const LastPixels p = args;  // stores to y cannot change a copy, so the loops keep it in registers
  const std::int64_t lanes = lanes_f32();
  std::int64_t c = 0;
  for (; c + lanes <= p.channels; c += lanes) vector_of_pixels<K, P, false>(p, c, lanes);
  if (c < p.channels) vector_of_pixels<K, P, true>(p, c, p.channels - c);
}

template <int K>
void counted(const LastPixels& p) {
  switch (p.count) {
    case 1: return all_channels<K, 1>(p);
    case 2: return all_channels<K, 2>(p);
    case 3: return all_channels<K, 3>(p);
    default: return all_channels<K, 4>(p);
  }
}

void pixels(const LastPixels& p) {
  const bool shared = p.pixel_step == p.tap_step;
  if (shared && p.columns == 3) return counted<3>(p);
  if (shared && p.columns == 5) return counted<5>(p);
  if (shared && p.columns == 7) return counted<7>(p);
  counted<0>(p);
}

}  // namespace

const DepthwiseLastKernels& depthwise_last_table() {
  static const DepthwiseLastKernels table{pixels};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const DepthwiseLastKernels&, depthwise_last_kernels, depthwise_last_table)
#endif
