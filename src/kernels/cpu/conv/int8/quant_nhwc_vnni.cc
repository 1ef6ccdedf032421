// vpdpwssd adds a pair of int16 products to an int32 in one instruction, where AVX-512BW needs two; vpdpbusd adds four products
// of bytes. Both wrap and do not saturate (Intel SDM, VPDPWSSD and VPDPBUSD). Operands are laid out as in quant_nhwc_simd.cc.

#include "kernels/cpu/conv/int8/quant_nhwc_vnni.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(SDX_NO_AVX512)

#include <immintrin.h>

#include <cstring>
#include <utility>

#include "kernels/cpu/simd/attributes.h"
#include "kernels/cpu/simd/repeat.h"

HWY_PUSH_ATTRIBUTES(SDX_AVX512_VNNI)
namespace sdx::cpu {
namespace {

// Not __m512i: GCC 12 spills accumulators of that type, which halves the speed.
using Ints = int __attribute__((vector_size(64)));

// kBytes: rows hold unsigned and panels signed bytes, four in place of two int16.
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
  SDX_REPEAT_12(SDX_DECLARE)
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
    SDX_REPEAT_12(SDX_STEP)
    for (int i = 0; i < (M + 2) / 3; ++i) a[i] += 2;
    b += 64;
  }
#define SDX_STORE(I)                                        \
  if constexpr (M > I) {                                    \
    std::memcpy(t.sums + 32 * I, &c##I, sizeof(c##I));      \
    std::memcpy(t.sums + 32 * I + 16, &e##I, sizeof(e##I)); \
  }
  SDX_REPEAT_12(SDX_STORE)
#undef SDX_STORE
#undef SDX_STEP
#undef SDX_DECLARE
}
#undef SDX_MULTIPLY_ADD

}  // namespace
}  // namespace sdx::cpu
HWY_POP_ATTRIBUTES

namespace sdx::cpu {
namespace {

template <bool kBytes, std::size_t... kIndex>
QRowsProduct choose_rows(std::int64_t m, std::index_sequence<kIndex...>) {
  constexpr QRowsProduct kTable[] = {rows_product<static_cast<int>(kIndex) + 1, kBytes>...};
  return kTable[m - 1];
}

}  // namespace

QRowsProduct qnhwc_vnni_product(std::int64_t m) { return choose_rows<false>(m, std::make_index_sequence<12>()); }
QRowsProduct qnhwc_vnni_quads(std::int64_t m) { return choose_rows<true>(m, std::make_index_sequence<12>()); }

}  // namespace sdx::cpu

#else

namespace sdx::cpu {

QRowsProduct qnhwc_vnni_product(std::int64_t) { return nullptr; }
QRowsProduct qnhwc_vnni_quads(std::int64_t) { return nullptr; }

}  // namespace sdx::cpu

#endif
