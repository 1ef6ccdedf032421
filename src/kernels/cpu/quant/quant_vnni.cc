// vpdpwssd adds a pair of int16 products to an int32 in one instruction, where AVX-512BW needs two. It wraps and does not
// saturate (Intel SDM, VPDPWSSD). Operands are laid out as in quant_simd.cc.

#include "kernels/cpu/quant/quant_vnni.h"

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

// Computes one row. Adding products takes four cycles and waits for the previous addition, so the two sums of one pair of inputs
// would leave half of the processor idle. So each of four pairs has sums of its own.
void row_product(const QTile& t, std::int32_t* out) {
  const std::int16_t* a = t.a;
  const std::int8_t* b = t.b;
#define SDX_DECLARE(I) \
  Ints c##I = {};      \
  Ints e##I = {};
  SDX_REPEAT_4(SDX_DECLARE)
#define SDX_STEP(I)                                                                                                 \
  {                                                                                                                 \
    int pair;                                                                                                       \
    std::memcpy(&pair, a + 2 * I, sizeof(pair));                                                                    \
    const __m512i v = _mm512_set1_epi32(pair);                                                                      \
    const __m512i b0 = _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + 64 * I)));      \
    const __m512i b1 = _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + 64 * I + 32))); \
    c##I = reinterpret_cast<Ints>(_mm512_dpwssd_epi32(reinterpret_cast<__m512i>(c##I), v, b0));                     \
    e##I = reinterpret_cast<Ints>(_mm512_dpwssd_epi32(reinterpret_cast<__m512i>(e##I), v, b1));                     \
  }
  std::int64_t p = 0;
  for (; p + 4 <= t.pairs; p += 4) {
    SDX_REPEAT_4(SDX_STEP)
    a += 8;
    b += 256;
  }
  for (; p < t.pairs; ++p) {
    SDX_STEP(0)
    a += 2;
    b += 64;
  }
#undef SDX_STEP
#undef SDX_DECLARE
  // Modulo 2^32, hence unsigned.
  using Counts = unsigned __attribute__((vector_size(64)));
  const Counts c =
      reinterpret_cast<Counts>(c0) + reinterpret_cast<Counts>(c1) + reinterpret_cast<Counts>(c2) + reinterpret_cast<Counts>(c3);
  const Counts e =
      reinterpret_cast<Counts>(e0) + reinterpret_cast<Counts>(e1) + reinterpret_cast<Counts>(e2) + reinterpret_cast<Counts>(e3);
  std::memcpy(out, &c, sizeof(c));
  std::memcpy(out + 16, &e, sizeof(e));
}

template <int M>
void product(const QTile& t, std::int32_t* out) {
  const std::int16_t* a = t.a;
  const std::int8_t* b = t.b;
#define SDX_DECLARE(I) \
  Ints c##I = {};      \
  Ints e##I = {};      \
  (void)c##I;          \
  (void)e##I;
  SDX_REPEAT_12(SDX_DECLARE)
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
    SDX_REPEAT_12(SDX_STEP)
    a += 2 * M;
    b += 64;
  }
#define SDX_STORE(I)                                     \
  if constexpr (M > I) {                                 \
    std::memcpy(out + 32 * I, &c##I, sizeof(c##I));      \
    std::memcpy(out + 32 * I + 16, &e##I, sizeof(e##I)); \
  }
  SDX_REPEAT_12(SDX_STORE)
#undef SDX_STORE
#undef SDX_STEP
#undef SDX_DECLARE
}

}  // namespace
}  // namespace sdx::cpu
HWY_POP_ATTRIBUTES

namespace sdx::cpu {
namespace {

template <std::size_t... kIndex>
QProduct choose(std::int64_t m, std::index_sequence<kIndex...>) {
  constexpr QProduct kTable[] = {product<static_cast<int>(kIndex) + 1>...};
  return kTable[m - 1];
}

}  // namespace

QProduct quant_vnni_product(std::int64_t m) { return m == 1 ? row_product : choose(m, std::make_index_sequence<12>()); }

}  // namespace sdx::cpu

#else

namespace sdx::cpu {

QProduct quant_vnni_product(std::int64_t) { return nullptr; }

}  // namespace sdx::cpu

#endif
