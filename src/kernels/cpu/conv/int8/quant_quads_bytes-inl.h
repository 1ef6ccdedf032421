// Turns 32 sums of a row into bytes with AVX-512; include within HWY_PUSH_ATTRIBUTES.
#ifndef SDX_KERNELS_CPU_QUANT_QUADS_BYTES_INL_H_
#define SDX_KERNELS_CPU_QUANT_QUADS_BYTES_INL_H_

#include <immintrin.h>

#include <cstdint>

#include "kernels/cpu/conv/int8/quant_quads_vnni.h"

namespace sdx::cpu {

// Not __m512i: GCC 12 spills accumulators of that type, which halves the speed.
using Ints = int __attribute__((vector_size(64)));

// Scales and rounds 16 sums that include biases. Clamps before rounding: bounds are whole numbers, so rounding keeps them.
template <bool kClamp>
static inline __m512i rounded(const QQuadFinish& f, Ints sums, const float* scale) {
  __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(reinterpret_cast<__m512i>(sums)), _mm512_load_ps(scale));
  if constexpr (kClamp) v = _mm512_min_ps(_mm512_max_ps(v, _mm512_set1_ps(f.low)), _mm512_set1_ps(f.high));
  return _mm512_cvtps_epi32(v);
}

// 32 sums as int16, in groups of four in the order 0 4 1 5 2 6 3 7.
template <bool kClamp>
static inline __m512i words(const QQuadFinish& f, Ints c, Ints e) {
  const __m512i w = _mm512_packs_epi32(rounded<kClamp>(f, c, f.scale), rounded<kClamp>(f, e, f.scale + 16));
  return _mm512_adds_epi16(w, _mm512_set1_epi16(static_cast<short>(f.zero_point)));
}

// Two rows of words as bytes; the lower half holds the first.
static inline __m512i bytes_of(const QQuadFinish& f, __m512i w0, __m512i w1) {
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_permutexvar_epi32(order, f.is_signed ? _mm512_packs_epi16(w0, w1) : _mm512_packus_epi16(w0, w1));
}

static inline void store(std::uint8_t* y, __mmask32 columns, __m256i v) { _mm256_mask_storeu_epi8(y, columns, v); }

// Rows I and J of a tile as bytes, or I alone where the tile ends with it. Needs M, kClamp, the sums c##I and e##I of rows and
// `f`, `y`, `g.ldc` and `columns`.
#define SDX_STORE_ROWS(I, J)                                                                   \
  if constexpr (M > J) {                                                                       \
    const __m512i v = bytes_of(f, words<kClamp>(f, c##I, e##I), words<kClamp>(f, c##J, e##J)); \
    store(y + I * g.ldc, columns, _mm512_castsi512_si256(v));                                  \
    store(y + J * g.ldc, columns, _mm512_extracti64x4_epi64(v, 1));                            \
  } else if constexpr (M > I) {                                                                \
    const __m512i w = words<kClamp>(f, c##I, e##I);                                            \
    store(y + I * g.ldc, columns, _mm512_castsi512_si256(bytes_of(f, w, w)));                  \
  }
#define SDX_STORE_12_ROWS \
  SDX_STORE_ROWS(0, 1)    \
  SDX_STORE_ROWS(2, 3)    \
  SDX_STORE_ROWS(4, 5)    \
  SDX_STORE_ROWS(6, 7)    \
  SDX_STORE_ROWS(8, 9)    \
  SDX_STORE_ROWS(10, 11)

}  // namespace sdx::cpu

#endif
