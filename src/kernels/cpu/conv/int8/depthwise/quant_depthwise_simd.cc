#include "kernels/cpu/conv/int8/depthwise/quant_depthwise_simd.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/int8/depthwise/quant_depthwise_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/conv/int8/quant_finish-inl.h"
#include "kernels/cpu/quant/quant_epilogue-inl.h"
#include "kernels/cpu/quant/quant_store-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

template <bool kSigned>
void depthwise_pixel(const QDepthwiseRow& r, const std::uint8_t* const* taps, std::int64_t first) {
  const std::int16_t* w = r.weights + first * r.taps_count;  // blocks of 2 channels
  std::fill(r.sums + first, r.sums + r.channels, 0);
  for (std::int64_t c = first; c < r.channels; c += 2) {
    const std::int64_t left = std::min<std::int64_t>(2, r.channels - c);
    for (std::int64_t t = 0; t < r.taps_count; t += 2, w += 4) {
      for (std::int64_t i = 0; i < 2 * left; ++i) {
        const std::uint8_t v = taps[t + i % 2][c + i / 2];
        r.sums[c + i / 2] += (kSigned ? static_cast<std::int8_t>(v) : v) * w[i];
      }
    }
  }
}

#else

template <bool kSigned>
struct ByteOf {
  using type = std::conditional_t<kSigned, std::int8_t, std::uint8_t>;
};

// Computes 2 * lanes channels, from channel `at` of each tap's pixel on.
template <bool kSigned>
HWY_INLINE void depthwise_block(const std::uint8_t* const* taps, std::int64_t count, std::int64_t at, const std::int16_t* w,
                                std::int32_t* sums) {
  using T = typename ByteOf<kSigned>::type;
  const DI d;
  const D16 d16;
  const std::int64_t lanes = lanes_f32();
  VI c0 = hn::Zero(d);
  VI c1 = hn::Zero(d);
  for (std::int64_t t = 0; t < count; t += 2, w += 4 * lanes) {
#if HWY_TARGET == HWY_AVX2
    const hn::FixedTag<T, 16> d8;
    const auto x0 = hn::LoadU(d8, reinterpret_cast<const T*>(taps[t] + at));
    const auto x1 = hn::LoadU(d8, reinterpret_cast<const T*>(taps[t + 1] + at));
    c0 = pair_add(c0, hn::PromoteTo(d16, hn::InterleaveLower(d8, x0, x1)), hn::LoadU(d16, w));
    c1 = pair_add(c1, hn::PromoteTo(d16, hn::InterleaveUpper(d8, x0, x1)), hn::LoadU(d16, w + 2 * lanes));
#else
    const hn::Rebind<T, DI> d8;
    const VI low = hn::Set(d, 0xFFFF);
    const auto pair = [&](std::int64_t i) {
      const VI x0 = hn::PromoteTo(d, hn::LoadU(d8, reinterpret_cast<const T*>(taps[t] + at + i)));
      const VI x1 = hn::PromoteTo(d, hn::LoadU(d8, reinterpret_cast<const T*>(taps[t + 1] + at + i)));
      return hn::BitCast(d16, hn::Or(hn::And(x0, low), hn::ShiftLeft<16>(x1)));
    };
    c0 = pair_add(c0, pair(0), hn::LoadU(d16, w));
    c1 = pair_add(c1, pair(lanes), hn::LoadU(d16, w + 2 * lanes));
#endif
  }
  hn::StoreU(c0, d, sums);
  hn::StoreU(c1, d, sums + lanes);
}

template <bool kSigned>
void depthwise_pixel(const QDepthwiseRow& r, const std::uint8_t* const* taps, std::int64_t first) {
  const std::int64_t block = 2 * lanes_f32();
  const std::int64_t step = block * r.taps_count;
  const std::int16_t* w = r.weights + first * r.taps_count;
  std::int64_t c = first;
  for (; c + block <= r.channels; c += block, w += step) depthwise_block<kSigned>(taps, r.taps_count, c, w, r.sums + c);
  if (c == r.channels) return;
  std::uint8_t tails[2][2 * kMaxF32Lanes] = {};
  const std::uint8_t* two[2] = {tails[0], tails[1]};
  std::int32_t part[2 * kMaxF32Lanes];
  std::fill(r.sums + c, r.sums + c + block, 0);
  for (std::int64_t t = 0; t < r.taps_count; t += 2, w += 2 * block) {
    for (int i = 0; i < 2; ++i) std::memcpy(tails[i], taps[t + i] + c, static_cast<std::size_t>(r.channels - c));
    depthwise_block<kSigned>(two, 2, 0, w, part);
    for (std::int64_t i = 0; i < block; ++i) r.sums[c + i] += part[i];
  }
}

#endif

#if HWY_TARGET == HWY_AVX2

// Computes bytes of 16 channels for a whole row: weights, scales and biases stay in registers or cache. kTaps: the number of taps
// if known (unrolled, weights in registers), else 0.
template <bool kSigned, std::int64_t kTaps, bool kPlain, bool kSignedOut>
void depthwise_columns(const QDepthwiseRow& r, const Columns& k, std::int64_t c) {
  using T = typename ByteOf<kSigned>::type;
  const D16 d16;
  const hn::FixedTag<T, 16> d8;
  const std::int64_t count = kTaps > 0 ? kTaps : r.taps_count;
  const std::int16_t* HWY_RESTRICT w = r.weights + c * count;
  const std::uint8_t* const* taps = r.taps;
  auto* y = reinterpret_cast<std::uint8_t*>(r.y) + c;
  VI c0;
  VI c1;
  const auto step = [&](std::int64_t t, V16 w0, V16 w1) HWY_ATTR {
    const auto x0 = hn::LoadU(d8, reinterpret_cast<const T*>(taps[t] + c));
    const auto x1 = hn::LoadU(d8, reinterpret_cast<const T*>(taps[t + 1] + c));
    c0 = pair_add(c0, hn::PromoteTo(d16, hn::InterleaveLower(d8, x0, x1)), w0);
    c1 = pair_add(c1, hn::PromoteTo(d16, hn::InterleaveUpper(d8, x0, x1)), w1);
  };
  if constexpr (kTaps == 10) {
    const V16 w00 = hn::LoadU(d16, w), w01 = hn::LoadU(d16, w + 16), w10 = hn::LoadU(d16, w + 32), w11 = hn::LoadU(d16, w + 48);
    const V16 w20 = hn::LoadU(d16, w + 64), w21 = hn::LoadU(d16, w + 80), w30 = hn::LoadU(d16, w + 96);
    const V16 w31 = hn::LoadU(d16, w + 112), w40 = hn::LoadU(d16, w + 128), w41 = hn::LoadU(d16, w + 144);
    for (std::int64_t i = 0; i < r.width; ++i, taps += 10, y += r.channels) {
      c0 = VI{k.bias0};
      c1 = VI{k.bias1};
      step(0, w00, w01);
      step(2, w10, w11);
      step(4, w20, w21);
      step(6, w30, w31);
      step(8, w40, w41);
      store_one<kSignedOut>(words_of<kPlain>(k, c0.raw, c1.raw), y);
    }
  } else {
    for (std::int64_t i = 0; i < r.width; ++i, taps += count, y += r.channels) {
      c0 = VI{k.bias0};
      c1 = VI{k.bias1};
      for (std::int64_t t = 0; t < count; t += 2) step(t, hn::LoadU(d16, w + 16 * t), hn::LoadU(d16, w + 16 * t + 16));
      store_one<kSignedOut>(words_of<kPlain>(k, c0.raw, c1.raw), y);
    }
  }
}

template <bool kSigned>
void depthwise_sixteen(const QDepthwiseRow& r, std::int64_t c) {
  const Columns k = columns_of(*r.epilogue, c);
  by_kind(k, [&](auto plain, auto is_signed) HWY_ATTR {
    r.taps_count == 10 ? depthwise_columns<kSigned, 10, plain, is_signed>(r, k, c)
                       : depthwise_columns<kSigned, 0, plain, is_signed>(r, k, c);
  });
}

// Returns how many channels it computed.
std::int64_t depthwise_fast(const QDepthwiseRow& r) {
  if (!gives_bytes(*r.epilogue)) return 0;
  std::int64_t c = 0;
  for (; c + 16 <= r.channels; c += 16) r.is_signed ? depthwise_sixteen<true>(r, c) : depthwise_sixteen<false>(r, c);
  return c;
}

#else

std::int64_t depthwise_fast(const QDepthwiseRow&) { return 0; }

#endif

void depthwise(const QDepthwiseRow& r) {
  const std::int64_t bytes = bytes_per_output(*r.epilogue);
  const std::int64_t done = depthwise_fast(r);
  if (done == r.channels) return;
  for (std::int64_t i = 0; i < r.width; ++i) {
    const std::uint8_t* const* taps = r.taps + i * r.taps_count;
    r.is_signed ? depthwise_pixel<true>(r, taps, done) : depthwise_pixel<false>(r, taps, done);
    finish_rows(*r.epilogue, r.sums + done, 0, 1, r.channels - done, done, r.y + (i * r.channels + done) * bytes, 0);
  }
}

}  // namespace

const QDepthwiseKernels& qdepthwise_table() {
  static const QDepthwiseKernels table{depthwise};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const QDepthwiseKernels&, qdepthwise_kernels, qdepthwise_table)
#endif
