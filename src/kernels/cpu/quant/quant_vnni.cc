// The inner product of 8-bit kernels with AVX512-VNNI: vpdpwssd adds a pair of int16 products to an int32 in one instruction,
// where AVX-512BW needs two, vpdpbusd four products of bytes (Intel SDM, VPDPWSSD and VPDPBUSD; they wrap, and do not saturate).
// Same operand layouts as quant_simd.cc and quant_nhwc_simd.cc.

#include <utility>

#include "kernels/cpu/conv/int8/quant_nhwc_simd.h"
#include "kernels/cpu/quant/quant_simd.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <cstring>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")
#endif

namespace sdx::cpu {
namespace {

// Not __m512i: GCC 12 spills accumulators of that type, which halves the speed.
using Ints = int __attribute__((vector_size(64)));

#define SDX_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)

template <int M>
void product(const QTile& t, std::int32_t* out) {
  const std::int16_t* a = t.a;
  const std::int8_t* b = t.b;
#define SDX_DECLARE(I) \
  Ints c##I = {};      \
  Ints e##I = {};      \
  (void)c##I;          \
  (void)e##I;
  SDX_ROWS(SDX_DECLARE)
  for (std::int64_t p = 0; p < t.pairs; ++p) {
    const __m512i b0 = _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(b)));
    const __m512i b1 = _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + 32)));
#define SDX_STEP(I)                                                                             \
  if constexpr (M > I) {                                                                        \
    int pair;                                                                                   \
    std::memcpy(&pair, a + 2 * I, sizeof(pair));                                                \
    const __m512i v = _mm512_set1_epi32(pair);                                                  \
    c##I = reinterpret_cast<Ints>(_mm512_dpwssd_epi32(reinterpret_cast<__m512i>(c##I), v, b0)); \
    e##I = reinterpret_cast<Ints>(_mm512_dpwssd_epi32(reinterpret_cast<__m512i>(e##I), v, b1)); \
  }
    SDX_ROWS(SDX_STEP)
    a += 2 * M;
    b += 64;
  }
#define SDX_STORE(I)                                     \
  if constexpr (M > I) {                                 \
    std::memcpy(out + 32 * I, &c##I, sizeof(c##I));      \
    std::memcpy(out + 32 * I + 16, &e##I, sizeof(e##I)); \
  }
  SDX_ROWS(SDX_STORE)
#undef SDX_STORE
#undef SDX_STEP
#undef SDX_DECLARE
}

// kBytes: rows are unsigned and panels signed bytes, four where two int16 would be.
template <int M, bool kBytes>
void rows_product(const QRows& t) {
#define SDX_MULTIPLY_ADD(ACC, A, B)                                                         \
  reinterpret_cast<Ints>(kBytes ? _mm512_dpbusd_epi32(reinterpret_cast<__m512i>(ACC), A, B) \
                                : _mm512_dpwssd_epi32(reinterpret_cast<__m512i>(ACC), A, B))
  const std::int64_t s = t.stride;
  const std::int16_t* a[4] = {t.a, t.a + 3 * s, t.a + 6 * s, t.a + 9 * s};
  const std::int16_t* b = t.b;
#define SDX_DECLARE(I)                                        \
  Ints c##I = {};                                             \
  Ints e##I = {};                                             \
  if constexpr (M > I) {                                      \
    if (t.add) {                                              \
      std::memcpy(&c##I, t.sums + 32 * I, sizeof(c##I));      \
      std::memcpy(&e##I, t.sums + 32 * I + 16, sizeof(e##I)); \
    }                                                         \
  }                                                           \
  (void)c##I;                                                 \
  (void)e##I;
  SDX_ROWS(SDX_DECLARE)
  for (std::int64_t p = 0; p < t.pairs; ++p) {
    const __m512i b0 = _mm512_loadu_si512(b);
    const __m512i b1 = _mm512_loadu_si512(b + 32);
#define SDX_STEP(I)                                           \
  if constexpr (M > I) {                                      \
    int pair;                                                 \
    std::memcpy(&pair, a[I / 3] + (I % 3) * s, sizeof(pair)); \
    const __m512i v = _mm512_set1_epi32(pair);                \
    c##I = SDX_MULTIPLY_ADD(c##I, v, b0);                     \
    e##I = SDX_MULTIPLY_ADD(e##I, v, b1);                     \
  }
    SDX_ROWS(SDX_STEP)
    for (int i = 0; i < (M + 2) / 3; ++i) a[i] += 2;
    b += 64;
  }
#define SDX_STORE(I)                                        \
  if constexpr (M > I) {                                    \
    std::memcpy(t.sums + 32 * I, &c##I, sizeof(c##I));      \
    std::memcpy(t.sums + 32 * I + 16, &e##I, sizeof(e##I)); \
  }
  SDX_ROWS(SDX_STORE)
#undef SDX_STORE
#undef SDX_STEP
#undef SDX_DECLARE
}
#undef SDX_MULTIPLY_ADD
#undef SDX_ROWS

}  // namespace
}  // namespace sdx::cpu

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace sdx::cpu {
namespace {

template <std::size_t... kIndex>
QProduct choose(std::int64_t m, std::index_sequence<kIndex...>) {
  constexpr QProduct kTable[] = {product<static_cast<int>(kIndex) + 1>...};
  return kTable[m - 1];
}

template <bool kBytes, std::size_t... kIndex>
QRowsProduct choose_rows(std::int64_t m, std::index_sequence<kIndex...>) {
  constexpr QRowsProduct kTable[] = {rows_product<static_cast<int>(kIndex) + 1, kBytes>...};
  return kTable[m - 1];
}

}  // namespace

QProduct vnni_product(std::int64_t m) { return choose(m, std::make_index_sequence<12>()); }
QRowsProduct vnni_rows_product(std::int64_t m) { return choose_rows<false>(m, std::make_index_sequence<12>()); }
QRowsProduct vnni_quads_product(std::int64_t m) { return choose_rows<true>(m, std::make_index_sequence<12>()); }

}  // namespace sdx::cpu

#else

namespace sdx::cpu {

QProduct vnni_product(std::int64_t) { return nullptr; }
QRowsProduct vnni_rows_product(std::int64_t) { return nullptr; }
QRowsProduct vnni_quads_product(std::int64_t) { return nullptr; }

}  // namespace sdx::cpu

#endif
