#include "kernels/cpu/conv/int8/depthwise/quant_depthwise3_simd.h"

#include <algorithm>
#include <type_traits>

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/int8/depthwise/quant_depthwise3_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/quant/quant_store-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2  // AVX-512 too: better targets have lower numbers

HWY_INLINE __m256i load16(const void* p) { return _mm256_load_si256(static_cast<const __m256i*>(p)); }

template <bool kSigned>
HWY_INLINE __m256i widened(const std::uint8_t* p) {
  const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return kSigned ? _mm256_cvtepi8_epi16(v) : _mm256_cvtepu8_epi16(v);
}

// Interleaves a pixel's 16 channels of two rows: channels 0-3 and 8-11, then 4-7 and 12-15, so that packing the sums restores the
// order.
HWY_INLINE void store_pair(__m256i upper, __m256i lower, std::int16_t* out) {
  _mm256_store_si256(reinterpret_cast<__m256i*>(out), _mm256_unpacklo_epi16(upper, lower));
  _mm256_store_si256(reinterpret_cast<__m256i*>(out + 16), _mm256_unpackhi_epi16(upper, lower));
}

// Widens image rows `row` and `row` + 1 to pairs, including the padding that output columns read.
template <bool kSigned>
void widen_rows(const QDepthwise3& d, std::int64_t row, std::int64_t columns, std::int16_t* out) {
  const ConvShape& s = *d.shape;
  const std::int64_t channels = s.groups;
  const __m256i zero = _mm256_set1_epi16(static_cast<std::int16_t>(d.zero));
  const std::int64_t from = std::clamp<std::int64_t>(s.pad[2], 0, columns);
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

// Pairs of weights for pairs of rows, [6] or [12] for each half of the 16 channels: taps of the upper and of the lower pair for
// an even output row, then for an odd one.
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

// The weights of one output row for half of the channels: three taps of the upper and three of the lower pair.
using RowWeights = const std::int16_t (*)[16];

// Computes one output row. Twelve weights stay in registers, which leaves one for a product and two for sums: pixels, scales and
// biases are memory operands. (Two rows of two pixels at a time would load each pixel only once, but the weights again and
// again.)
template <int kStride, bool kPlain, bool kSigned>
void compute(const Columns& columns, RowWeights first, RowWeights second, const std::int16_t* upper, const std::int16_t* lower,
             std::int64_t width, std::int64_t channels, std::uint8_t* y) {
  const Columns* k = &columns;
  const __m256i u0 = load16(first[0]), u1 = load16(first[1]), u2 = load16(first[2]);
  const __m256i l0 = load16(first[3]), l1 = load16(first[4]), l2 = load16(first[5]);
  const __m256i v0 = load16(second[0]), v1 = load16(second[1]), v2 = load16(second[2]);
  const __m256i m0 = load16(second[3]), m1 = load16(second[4]), m2 = load16(second[5]);
  for (std::int64_t i = 0; i < width; ++i, upper += kStride * 32, lower += kStride * 32, y += channels) {
    __asm__("" : "+r"(k));  // else scales and biases would take the weights' registers
    __m256i c = k->bias0, e = k->bias1;
    // Products are added one after the other: a tree of sums would need registers for the sums that wait.
#define SDX_TAP(SUM, W, AT)                                      \
  SUM = _mm256_add_epi32(SUM, _mm256_madd_epi16(W, load16(AT))); \
  __asm__("" : "+x"(SUM));
    SDX_TAP(c, u0, upper)
    SDX_TAP(e, v0, upper + 16)
    SDX_TAP(c, u1, upper + 32)
    SDX_TAP(e, v1, upper + 48)
    SDX_TAP(c, u2, upper + 64)
    SDX_TAP(e, v2, upper + 80)
    SDX_TAP(c, l0, lower)
    SDX_TAP(e, m0, lower + 16)
    SDX_TAP(c, l1, lower + 32)
    SDX_TAP(e, m1, lower + 48)
    SDX_TAP(c, l2, lower + 64)
    SDX_TAP(e, m2, lower + 80)
#undef SDX_TAP
    const __m256i w = words_of<kPlain>(*k, c, e);
    const __m128i low = _mm256_castsi256_si128(w), high = _mm256_extracti128_si256(w, 1);
    store_half(y, kSigned ? _mm_packs_epi16(low, high) : _mm_packus_epi16(low, high));
  }
}

// Scales and biases in the channel order of store_pair().
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
  // Two pairs of image rows serve two output rows at stride 1, and one at stride 2.
  constexpr std::int64_t kStep = kStride == 1 ? 2 : 1;
  for (std::int64_t row = d.begin; row < d.end; row += kStep) {
    widen(d, row * kStride - s.pad[1] + 2, columns, lower);
    std::uint8_t* y = d.y + row * row_bytes;
    compute<kStride, kPlain, kSigned>(k, w.of[0], w.of[1], upper, lower, width, s.groups, y);
    if (kStep == 2 && row + 1 < d.end) {
      compute<kStride, kPlain, kSigned>(k, w.of[0] + 6, w.of[1] + 6, upper, lower, width, s.groups, y + row_bytes);
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
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(QDepthwise3Kernel, qdepthwise3_kernel, qdepthwise3_table)
#endif
