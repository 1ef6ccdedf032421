#pragma once
// Depthwise convolutions with vpdpbusd: makes quads of four image rows, one above the other for each channel, and turns their
// sums into bytes. Include between HWY_PUSH_ATTRIBUTES(SDX_AVX512_VNNI) and its end, after <immintrin.h>; internal to this
// folder.

#include <algorithm>

#include "kernels/cpu/conv/int8/depthwise/quant_depthwise3_simd.h"

namespace sdx::cpu {
namespace {

inline constexpr std::int64_t kSlack = 8;  // columns after the quads that are read but not used

// A vector of kGroups groups of 16 bytes.
template <int kGroups>
struct BytesOf;
template <>
struct BytesOf<4> {
  using Type = __m512i;
};
template <>
struct BytesOf<2> {
  using Type = __m256i;
};
template <>
struct BytesOf<1> {
  using Type = __m128i;
};
template <int kGroups>
using Bytes = typename BytesOf<kGroups>::Type;

inline void load(const void* p, __m512i& v) { v = _mm512_loadu_si512(p); }
inline void load(const void* p, __m256i& v) { v = _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
inline void load(const void* p, __m128i& v) { v = _mm_loadu_si128(static_cast<const __m128i*>(p)); }
inline void store(void* p, __m512i v) { _mm512_store_si512(p, v); }
inline void store(void* p, __m256i v) { _mm256_store_si256(static_cast<__m256i*>(p), v); }
inline void store(void* p, __m128i v) { _mm_store_si128(static_cast<__m128i*>(p), v); }
inline void fill(char c, __m512i& v) { v = _mm512_set1_epi8(c); }
inline void fill(char c, __m256i& v) { v = _mm256_set1_epi8(c); }
inline void fill(char c, __m128i& v) { v = _mm_set1_epi8(c); }

#define SDX_OF_THREE_WIDTHS(NAME, OP)                                     \
  inline __m512i NAME(__m512i a, __m512i b) { return _mm512_##OP(a, b); } \
  inline __m256i NAME(__m256i a, __m256i b) { return _mm256_##OP(a, b); } \
  inline __m128i NAME(__m128i a, __m128i b) { return _mm_##OP(a, b); }
SDX_OF_THREE_WIDTHS(low_bytes, unpacklo_epi8)
SDX_OF_THREE_WIDTHS(high_bytes, unpackhi_epi8)
SDX_OF_THREE_WIDTHS(low_words, unpacklo_epi16)
SDX_OF_THREE_WIDTHS(high_words, unpackhi_epi16)
#undef SDX_OF_THREE_WIDTHS

inline __m512i flipped(__m512i a, __m512i b) { return _mm512_xor_si512(a, b); }
inline __m256i flipped(__m256i a, __m256i b) { return _mm256_xor_si256(a, b); }
inline __m128i flipped(__m128i a, __m128i b) { return _mm_xor_si128(a, b); }

// q[j] receives the quads of channels 4j to 4j + 3 of each group of 16.
template <class V>
inline void interleave(V r0, V r1, V r2, V r3, V (&q)[4]) {
  const V low01 = low_bytes(r0, r1), high01 = high_bytes(r0, r1), low23 = low_bytes(r2, r3), high23 = high_bytes(r2, r3);
  q[0] = low_words(low01, low23);
  q[1] = high_words(low01, low23);
  q[2] = low_words(high01, high23);
  q[3] = high_words(high01, high23);
}

inline __m512i everywhere(__m512i v) { return v; }
inline __m512i everywhere(__m256i v) { return _mm512_broadcast_i64x4(v); }
inline __m512i everywhere(__m128i v) { return _mm512_broadcast_i32x4(v); }

// Narrows weights of a row of taps to bytes.
inline void narrow(const std::int16_t* w, __m512i& v) {
  const __m256i low = _mm512_cvtepi16_epi8(_mm512_loadu_si512(w)), high = _mm512_cvtepi16_epi8(_mm512_loadu_si512(w + 32));
  v = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
inline void narrow(const std::int16_t* w, __m256i& v) { v = _mm512_cvtepi16_epi8(_mm512_loadu_si512(w)); }
inline void narrow(const std::int16_t* w, __m128i& v) {
  v = _mm256_cvtepi16_epi8(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(w)));
}

// Values 4j to 4j + 3 of each group of 16; repeats the groups if there are fewer than four.
template <int kGroups>
inline __m512i fours(const void* values, int j) {
  const auto at = [&](int lane) {
    return _mm_loadu_si128(
        reinterpret_cast<const __m128i*>(static_cast<const char*>(values) + (lane % kGroups * 16 + 4 * j) * 4));
  };
  const __m512i v = _mm512_inserti32x4(_mm512_castsi128_si512(at(0)), at(1), 1);
  return _mm512_inserti32x4(_mm512_inserti32x4(v, at(2), 2), at(3), 3);
}

// Not __m512i: see quant_quads_bytes-inl.h.
using Ints = int __attribute__((vector_size(64)));

struct Finish {
  Ints bias[4];
  __m512 scale[4];
  __m512 low, high;
  __m512i zero;
  bool is_signed;
};

template <int kGroups>
Finish finish_of(const QDepthwise3& d) {
  const QEpilogue& e = *d.epilogue;
  Finish f;
  for (int j = 0; j < 4; ++j) {
    f.bias[j] = reinterpret_cast<Ints>(fours<kGroups>(e.bias + d.column, j));
    f.scale[j] = e.scale_is_array ? _mm512_castsi512_ps(fours<kGroups>(e.scale + d.column, j)) : _mm512_set1_ps(*e.scale);
  }
  f.low = _mm512_set1_ps(static_cast<float>(e.low - e.zero_point));
  f.high = _mm512_set1_ps(static_cast<float>(e.high - e.zero_point));
  f.zero = _mm512_set1_epi16(static_cast<short>(e.zero_point));
  f.is_signed = e.output == QEpilogue::Output::s8;
  return f;
}

// The layout of quads: four planes, one for each j, of columns of kGroups * 16 bytes; at stride 2 the even columns come first.
template <int kStride, int kGroups>
struct Planes {
  static constexpr std::int64_t kColumn = kGroups * 16;
  std::uint8_t* at;
  std::int64_t half, plane;  // bytes
  Planes(std::uint8_t* buffer, std::int64_t columns)
      : at(buffer), half(((columns + kStride - 1) / kStride + kSlack) * kColumn), plane((half * kStride + 63) / 64 * 64) {}
  std::uint8_t* column(std::int64_t c) const {
    return kStride == 1 ? at + c * kColumn : at + c / 2 * kColumn + (c % 2 != 0 ? half : 0);
  }
};

// Makes quads of kRows image rows from `row` on and `columns` columns from `first` on, with the padding around them. If kRows is
// 3, the fourth row holds padding.
template <int kRows, int kStride, int kGroups>
void make_quads(const QDepthwise3& d, std::int64_t row, std::int64_t first, std::int64_t columns,
                const Planes<kStride, kGroups>& to) {
  using V = Bytes<kGroups>;
  const ConvShape& s = *d.shape;
  const std::int64_t channels = s.groups;
  alignas(64) std::uint8_t outside[64];
  std::fill(outside, outside + 64, static_cast<std::uint8_t>(d.zero));
  const std::uint8_t* rows[4];
  std::int64_t steps[4];
  for (std::int64_t r = 0; r < 4; ++r) {
    const std::int64_t y = row + r;
    const bool inside = y >= 0 && y < s.in[1] && r < kRows;
    rows[r] = inside ? d.x + (y * s.in[2] + first) * channels : outside;
    steps[r] = inside ? channels : 0;
  }
  V flip, zero;
  fill(static_cast<char>(d.is_signed ? 0x80 : 0), flip);
  load(outside, zero);
  zero = flipped(zero, flip);
  const auto put = [&](std::int64_t c, const V(&q)[4]) {
    std::uint8_t* at = to.column(c);
    for (int j = 0; j < 4; ++j) store(at + j * to.plane, q[j]);
  };
  const V padding[4] = {zero, zero, zero, zero};
  const std::int64_t from = std::clamp<std::int64_t>(-first, 0, columns), stop = std::clamp(s.in[2] - first, from, columns);
  for (std::int64_t c = 0; c < from; ++c) put(c, padding);
  for (std::int64_t c = from; c < stop; ++c) {
    V r[4], q[4];
    for (int i = 0; i < 4; ++i) {
      load(rows[i] + c * steps[i], r[i]);
      r[i] = flipped(r[i], flip);
    }
    interleave(r[0], r[1], r[2], r[3], q);
    put(c, q);
  }
  for (std::int64_t c = stop; c < columns; ++c) put(c, padding);
}

inline __m512i rounded(const Finish& f, Ints sums, int j) {
  const __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(reinterpret_cast<__m512i>(sums)), f.scale[j]);
  return _mm512_cvtps_epi32(_mm512_min_ps(_mm512_max_ps(v, f.low), f.high));
}

// Words of channels [4j, 4j + 8) of each 16, from the sums of j and of j + 1.
inline __m512i words_of(const Finish& f, Ints sums, Ints next, int j) {
  return _mm512_adds_epi16(_mm512_packs_epi32(rounded(f, sums, j), rounded(f, next, j + 1)), f.zero);
}

// Bytes from the words of j = 0 and j = 2.
inline __m512i bytes_of(const Finish& f, __m512i low, __m512i high) {
  return f.is_signed ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
}

// Stores `count` pixels of 16 * kGroups channels, but at most as many as a vector holds.
template <int kGroups>
inline void put_pixels(std::uint8_t* y, std::int64_t channels, std::int64_t count, __m512i v) {
  if constexpr (kGroups == 4) {
    _mm512_storeu_si512(y, v);
  } else if constexpr (kGroups == 2) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y), _mm512_castsi512_si256(v));
    if (count > 1) _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + channels), _mm512_extracti64x4_epi64(v, 1));
  } else {
    const auto part = [&](std::int64_t i) { return reinterpret_cast<__m128i*>(y + i * channels); };
    _mm_storeu_si128(part(0), _mm512_castsi512_si128(v));
    if (count > 1) _mm_storeu_si128(part(1), _mm512_extracti32x4_epi32(v, 1));
    if (count > 2) _mm_storeu_si128(part(2), _mm512_extracti32x4_epi32(v, 2));
    if (count > 3) _mm_storeu_si128(part(3), _mm512_extracti32x4_epi32(v, 3));
  }
}

}  // namespace
}  // namespace sdx::cpu
