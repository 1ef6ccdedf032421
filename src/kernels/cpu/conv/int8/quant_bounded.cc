#include "kernels/cpu/conv/int8/quant_bounded.h"

#include <algorithm>

#include "kernels/cpu/simd/attributes.h"
#include "kernels/cpu/simd/repeat.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <cstring>

HWY_PUSH_ATTRIBUTES(SDX_AVX2)
namespace sdx::cpu {
namespace {

constexpr int kColumns = 16;

// Not __m256i: GCC 12 spills accumulators of that type.
using Ints = int __attribute__((vector_size(32)));

inline __m256i load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
// Adds the products of a row's quad to 16 columns' sums. In assembly, because twelve sums, half of the weights, ones and two
// vectors on their way fill all 16 registers, and compilers that reorder rows spill six of the sums.
inline void add_products(const std::uint8_t* quad, __m256i low_weights, const std::int8_t* high_weights, __m256i ones, Ints& low,
                         Ints& high) {
  __m256i bytes, pairs;
  asm("vpbroadcastd %[quad], %[bytes]\n\t"
      "vpmaddubsw %[low_weights], %[bytes], %[pairs]\n\t"
      "vpmaddubsw %[high_weights], %[bytes], %[bytes]\n\t"
      "vpmaddwd %[ones], %[pairs], %[pairs]\n\t"
      "vpmaddwd %[ones], %[bytes], %[bytes]\n\t"
      "vpaddd %[pairs], %[low], %[low]\n\t"
      "vpaddd %[bytes], %[high], %[high]"
      : [low] "+x"(low), [high] "+x"(high), [bytes] "=&x"(bytes), [pairs] "=&x"(pairs)
      : [quad] "m"(*reinterpret_cast<const char(*)[4]>(quad)), [low_weights] "x"(low_weights),
        [high_weights] "m"(*reinterpret_cast<const __m256i_u*>(high_weights)), [ones] "x"(ones));
}

#define SDX_DECLARE(I)                                              \
  const std::uint8_t* a##I = a + (M > I ? I * s : 0);               \
  Ints c##I = {}, e##I = {};                                        \
  if (M > I && t.add) {                                             \
    c##I = reinterpret_cast<Ints>(load(t.sums + kColumns * I));     \
    e##I = reinterpret_cast<Ints>(load(t.sums + kColumns * I + 8)); \
  }                                                                 \
  (void)a##I;
#define SDX_STEP(I, P) \
  if constexpr (M > I) add_products(a##I + 4 * (P), b0, b + 32 + 4 * kColumns * (P), ones, c##I, e##I);
#define SDX_STEP_FIRST(I) SDX_STEP(I, 0)
#define SDX_STEP_SECOND(I) SDX_STEP(I, 1)
#define SDX_ADVANCE(I) a##I += 8;
#define SDX_STORE(I)                                             \
  if constexpr (M > I) {                                         \
    std::memcpy(t.sums + kColumns * I, &c##I, sizeof(c##I));     \
    std::memcpy(t.sums + kColumns * I + 8, &e##I, sizeof(e##I)); \
  }

template <int M>
void rows_product(const QRows& t) {
  const std::int64_t s = 2 * t.stride;
  const auto* a = reinterpret_cast<const std::uint8_t*>(t.a);
  const auto* b = reinterpret_cast<const std::int8_t*>(t.b);
  const __m256i ones = _mm256_set1_epi16(1);
  SDX_REPEAT_6(SDX_DECLARE)
  std::int64_t p = t.pairs;
  for (; p >= 2; p -= 2, b += 8 * kColumns) {
    {
      const __m256i b0 = load(b);
      SDX_REPEAT_6(SDX_STEP_FIRST)
    }
    {
      const __m256i b0 = load(b + 64);
      SDX_REPEAT_6(SDX_STEP_SECOND)
    }
    SDX_REPEAT_6(SDX_ADVANCE)
  }
  if (p > 0) {
    const __m256i b0 = load(b);
    SDX_REPEAT_6(SDX_STEP_FIRST)
  }
  SDX_REPEAT_6(SDX_STORE)
}
#undef SDX_STORE
#undef SDX_ADVANCE
#undef SDX_STEP_SECOND
#undef SDX_STEP_FIRST
#undef SDX_STEP
#undef SDX_DECLARE

void product(const QRows& t) {
  switch (t.m) {
#define SDX_CASE(I) \
  case I + 1: return rows_product<I + 1>(t);
    SDX_REPEAT_6(SDX_CASE)
#undef SDX_CASE
    default: break;
  }
}

}  // namespace
}  // namespace sdx::cpu
HWY_POP_ATTRIBUTES

namespace sdx::cpu {
QRowsProduct qbounded_avx2() { return product; }
}  // namespace sdx::cpu

#else

namespace sdx::cpu {
QRowsProduct qbounded_avx2() { return nullptr; }
}  // namespace sdx::cpu

#endif

namespace sdx::cpu {
namespace {

constexpr int kBound = 128;

// The part of w1 beyond what may be added to w0.
int excess_of(int w0, int w1) {
  if (w0 > 0 && w1 > 0) return std::max(0, w0 + w1 - kBound);
  if (w0 < 0 && w1 < 0) return std::min(0, w0 + w1 + kBound);
  return 0;
}

}  // namespace

std::int32_t find_excess(const std::int8_t* panel, std::int64_t pairs, std::int64_t nr, QExcess* entries) {
  const std::int64_t most = most_excess(pairs);
  std::int32_t found = 0;
  for (std::int64_t i = 0; i < pairs * nr; ++i) {
    const int excess = excess_of(panel[2 * i], panel[2 * i + 1]);
    if (excess == 0) continue;
    if (found == most) return -1;
    entries[found++] = {static_cast<std::uint16_t>(i / nr * 2 + 1), static_cast<std::uint8_t>(i % nr),
                        static_cast<std::int8_t>(excess)};
  }
  return found;
}

void cut_excess(std::int8_t* panel, std::int64_t nr, const QExcess* entries, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const QExcess& e = entries[i];
    std::int8_t& weight = panel[(e.k / 2 * nr + e.column) * 2 + 1];
    weight = static_cast<std::int8_t>(weight - e.weight);
  }
}

void add_excess(const QExcess* entries, std::int64_t count, const std::uint8_t* rows, std::int64_t stride, std::int64_t m,
                std::int64_t nr, std::int32_t* sums) {
  for (std::int64_t i = 0; i < count; ++i) {
    const QExcess& e = entries[i];
    const std::uint8_t* from = rows + e.k;
    std::int32_t* to = sums + e.column;
    for (std::int64_t row = 0; row < m; ++row, from += stride, to += nr) *to += *from * e.weight;
  }
}

}  // namespace sdx::cpu
