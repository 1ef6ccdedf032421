#include <algorithm>
#include <type_traits>

#include "kernels/cpu/quant_depthwise.h"
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/quant_depthwise_kernels.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/quant_store-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2  // AVX-512 too: better targets have lower numbers

HWY_INLINE __m256i load16(const void* p) { return _mm256_load_si256(static_cast<const __m256i*>(p)); }

template <bool kSigned>
HWY_INLINE __m256i widened(const std::uint8_t* p) {
  const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return kSigned ? _mm256_cvtepi8_epi16(v) : _mm256_cvtepu8_epi16(v);
}

// A pixel's 16 channels of two rows: channels 0-3 and 8-11, then 4-7 and 12-15, so that packing the sums restores the order.
HWY_INLINE void store_pair(__m256i upper, __m256i lower, std::int16_t* out) {
  _mm256_store_si256(reinterpret_cast<__m256i*>(out), _mm256_unpacklo_epi16(upper, lower));
  _mm256_store_si256(reinterpret_cast<__m256i*>(out + 16), _mm256_unpackhi_epi16(upper, lower));
}

// Image rows `row` and `row` + 1 as pairs, with the padding that output columns meet.
template <bool kSigned>
void widen_rows(const QDepthwise3& d, std::int64_t row, std::int64_t columns, std::int16_t* out) {
  const ConvShape& s = *d.shape;
  const std::int64_t channels = s.groups;
  const __m256i zero = _mm256_set1_epi16(static_cast<std::int16_t>(d.zero));
  const std::int64_t from = std::min(columns, s.pad[2]);
  const std::int64_t to = std::clamp(s.in[2] + s.pad[2], from, columns);
  for (std::int64_t i = 0; i < from; ++i) store_pair(zero, zero, out + i * 32);
  for (std::int64_t i = to; i < columns; ++i) store_pair(zero, zero, out + i * 32);
  const bool upper = row >= 0 && row < s.in[1];
  const bool lower = row + 1 >= 0 && row + 1 < s.in[1];
  const std::uint8_t* x = d.x + (row * s.in[2] + from - s.pad[2]) * channels;
  const std::int64_t below = s.in[2] * channels;
  std::int16_t* at = out + from * 32;
  std::int16_t* const stop = out + to * 32;
  if (upper && lower) {
    for (; at < stop; at += 32, x += channels) store_pair(widened<kSigned>(x), widened<kSigned>(x + below), at);
  } else if (upper) {
    for (; at < stop; at += 32, x += channels) store_pair(widened<kSigned>(x), zero, at);
  } else if (lower) {
    for (; at < stop; at += 32, x += channels) store_pair(zero, widened<kSigned>(x + below), at);
  } else {
    for (; at < stop; at += 32) store_pair(zero, zero, at);
  }
}

// Pairs of weights as the pairs of rows want them, [6] or [12] for each half of the 16 channels: taps of the upper and of the
// lower pair for an even output row, then for an odd one.
struct Weights {
  alignas(32) std::int16_t of[2][12][16];
};

void arrange(const QDepthwise3& d, Weights& w) {
  const __m256i none = _mm256_setzero_si256();
  const auto put = [&](int i, __m256i upper, __m256i lower) HWY_ATTR {
    _mm256_store_si256(reinterpret_cast<__m256i*>(w.of[0][i]), _mm256_unpacklo_epi16(upper, lower));
    _mm256_store_si256(reinterpret_cast<__m256i*>(w.of[1][i]), _mm256_unpackhi_epi16(upper, lower));
  };
  for (int x = 0; x < 3; ++x) {
    const auto tap = [&](int y) HWY_ATTR {
      return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(d.weights + (3 * y + x) * d.weight_step));
    };
    put(x, tap(0), tap(1));
    put(3 + x, tap(2), none);
    put(6 + x, none, tap(0));
    put(9 + x, tap(1), tap(2));
  }
}

HWY_INLINE __m256i multiply_add(__m256i acc, __m256i x, const std::int16_t* w) {
  return _mm256_add_epi32(acc, _mm256_madd_epi16(x, load16(w)));
}

// Two neighbouring pixels of one output row, of half the channels.
template <int kStride>
HWY_INLINE void two_pixels(const __m256i* upper, const __m256i* lower, const std::int16_t (*w)[16], __m256i bias,
                           __m256i (&to)[2]) {
  to[0] = to[1] = bias;
#define SDX_TAP(X)                                       \
  to[0] = multiply_add(to[0], upper[X], w[X]);           \
  to[1] = multiply_add(to[1], upper[X + kStride], w[X]); \
  to[0] = multiply_add(to[0], lower[X], w[3 + X]);       \
  to[1] = multiply_add(to[1], lower[X + kStride], w[3 + X]);
  SDX_TAP(0)
  SDX_TAP(1)
  SDX_TAP(2)
#undef SDX_TAP
}

template <bool kSigned>
HWY_INLINE void store_pixels(__m256i w0, __m256i w1, std::uint8_t* y, std::int64_t step) {
  const __m256i bytes = _mm256_permute4x64_epi64(narrow_words<kSigned>(w0, w1), 0xD8);
  store_half(y, _mm256_castsi256_si128(bytes));
  store_half(y + step, _mm256_extracti128_si256(bytes, 1));
}

// kRows output rows from two pairs of image rows; y1: the second.
template <int kStride, int kRows, bool kPlain, bool kSigned>
void compute(const Columns& k, const Weights& w, const std::int16_t* upper, const std::int16_t* lower, std::int64_t width,
             std::int64_t channels, std::uint8_t* y0, std::uint8_t* y1) {
  constexpr int kPixels = kStride + 3;
  for (std::int64_t i = 0; i < width; i += 2) {
    const std::int64_t x = std::min(i, width - 2);  // the last pixel alone: the one before it once more
    __m256i rounded_even[2][2];
    __m256i rounded_odd[2][2];
    for (int half = 0; half < 2; ++half) {
      const __m256 scale = half == 0 ? k.scale0 : k.scale1;
      const __m256i bias = half == 0 ? k.bias0 : k.bias1;
      __m256i a[kPixels];
      __m256i b[kPixels];
      for (int p = 0; p < kPixels; ++p) {
        a[p] = load16(upper + (x * kStride + p) * 32 + half * 16);
        b[p] = load16(lower + (x * kStride + p) * 32 + half * 16);
      }
      __m256i sums[2];
      two_pixels<kStride>(a, b, w.of[half], bias, sums);
      for (int p = 0; p < 2; ++p) rounded_even[p][half] = rounded<kPlain>(k, sums[p], scale);
      if constexpr (kRows == 2) {
        two_pixels<kStride>(a, b, w.of[half] + 6, bias, sums);
        for (int p = 0; p < 2; ++p) rounded_odd[p][half] = rounded<kPlain>(k, sums[p], scale);
      }
    }
    const auto words = [&](const __m256i(&v)[2]) HWY_ATTR { return _mm256_adds_epi16(_mm256_packs_epi32(v[0], v[1]), k.zero); };
    store_pixels<kSigned>(words(rounded_even[0]), words(rounded_even[1]), y0 + x * channels, channels);
    if constexpr (kRows == 2) store_pixels<kSigned>(words(rounded_odd[0]), words(rounded_odd[1]), y1 + x * channels, channels);
  }
}

// Scales and biases in the order of store_pair().
Columns halves_of(const QEpilogue& e, std::int64_t column) {
  Columns k = columns_of(e, column);
  const __m256 s0 = k.scale0, s1 = k.scale1;
  const __m256i b0 = k.bias0, b1 = k.bias1;
  k.scale0 = _mm256_permute2f128_ps(s0, s1, 0x20);
  k.scale1 = _mm256_permute2f128_ps(s0, s1, 0x31);
  k.bias0 = _mm256_permute2x128_si256(b0, b1, 0x20);
  k.bias1 = _mm256_permute2x128_si256(b0, b1, 0x31);
  return k;
}

template <int kStride, bool kPlain, bool kSigned>
void rows_of(const QDepthwise3& d, const Columns& k) {
  const ConvShape& s = *d.shape;
  Weights w;
  arrange(d, w);
  const auto widen = d.is_signed ? widen_rows<true> : widen_rows<false>;
  const std::int64_t width = s.out[2];
  const std::int64_t columns = (width - 1) * kStride + 3;
  std::int16_t* upper = d.pairs;
  std::int16_t* lower = d.pairs + columns * 32;
  const std::int64_t row_bytes = width * s.groups;
  widen(d, d.begin * kStride - s.pad[1], columns, upper);
  // At stride 1 two output rows lie over two pairs of image rows, at stride 2 one.
  constexpr std::int64_t kStep = kStride == 1 ? 2 : 1;
  for (std::int64_t row = d.begin; row < d.end; row += kStep) {
    widen(d, row * kStride - s.pad[1] + 2, columns, lower);
    std::uint8_t* y = d.y + row * row_bytes;
    if (kStep == 2 && row + 1 < d.end) {
      compute<kStride, kStep, kPlain, kSigned>(k, w, upper, lower, width, s.groups, y, y + row_bytes);
    } else {
      compute<kStride, 1, kPlain, kSigned>(k, w, upper, lower, width, s.groups, y, y);
    }
    std::swap(upper, lower);
  }
}

void depthwise3(const QDepthwise3& d) {
  const Columns k = halves_of(*d.epilogue, d.column);
  by_kind(k, [&](auto plain, auto is_signed)
                 HWY_ATTR { d.shape->stride[1] == 1 ? rows_of<1, plain, is_signed>(d, k) : rows_of<2, plain, is_signed>(d, k); });
}

constexpr QDepthwise3Kernel kKernel = depthwise3;

#else

constexpr QDepthwise3Kernel kKernel = nullptr;

#endif

}  // namespace

QDepthwise3Kernel qdepthwise3_table() { return kKernel; }

}  // namespace sdx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/dispatch.h"

namespace sdx::cpu {

QDepthwise3Kernel qdepthwise3_kernel() { return SDX_CPU_PICK(qdepthwise3_table)(); }

}  // namespace sdx::cpu
#endif
