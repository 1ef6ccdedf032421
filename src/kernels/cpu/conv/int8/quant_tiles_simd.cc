#include "kernels/cpu/conv/int8/quant_tiles_simd.h"

#include <type_traits>

#include "kernels/cpu/conv/int8/quant_fetch.h"
#include "kernels/cpu/simd/repeat.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/int8/quant_tiles_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/quant/quant_store-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {

#if HWY_TARGET != HWY_AVX2

QTilesKernel qtiles_table() { return nullptr; }

#else

namespace {

HWY_INLINE __m256i load(const std::int16_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
HWY_INLINE __m256i load(const std::int32_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
HWY_INLINE __m256i pair_of(const std::int16_t* p) { return _mm256_set1_epi32(read_pair(p)); }
HWY_INLINE __m256i multiply_add(__m256i acc, __m256i a, __m256i b) { return _mm256_add_epi32(acc, _mm256_madd_epi16(a, b)); }

// The initial values of sums: biases, less each column's surplus for crossed products.
struct Start {
  __m256i first, second;
};

// Turns sums c and e of M rows into bytes, two rows at a time.
#define SDX_TILE_STORE(I)                                                                                                   \
  if constexpr (M > I + 1) {                                                                                                \
    store_two<kSigned>(words_of<kPlain>(k, c##I, e##I), words_of<kPlain>(k, SDX_NEXT_C_##I, SDX_NEXT_E_##I), y + I * g.ldc, \
                       y + (I + 1) * g.ldc);                                                                                \
  } else if constexpr (M > I) {                                                                                             \
    store_one<kSigned>(words_of<kPlain>(k, c##I, e##I), y + I * g.ldc);                                                     \
  }
#define SDX_NEXT_C_0 c1
#define SDX_NEXT_E_0 e1
#define SDX_NEXT_C_2 c3
#define SDX_NEXT_E_2 e3
#define SDX_NEXT_C_4 c5
#define SDX_NEXT_E_4 e5

#define SDX_TILE_DECLARE(I)                                          \
  __m256i c##I = s.first;                                            \
  __m256i e##I = s.second;                                           \
  if constexpr (M > I) {                                             \
    if constexpr (kAdd) {                                            \
      const std::int32_t* sums = t.sums + (row + I) * 16;            \
      c##I = _mm256_add_epi32(c##I, load(sums));                     \
      e##I = _mm256_add_epi32(e##I, load(sums + 8));                 \
    } else if constexpr (kCrossed) {                                 \
      const __m256i cross = _mm256_set1_epi32(t.row_cross[row + I]); \
      c##I = _mm256_sub_epi32(c##I, cross);                          \
      e##I = _mm256_sub_epi32(e##I, cross);                          \
    }                                                                \
  }                                                                  \
  (void)c##I;                                                        \
  (void)e##I;

// Computes M rows from `row` on.
template <int M, bool kCrossed, bool kAdd, bool kPlain, bool kSigned, bool kHalf>
HWY_INLINE void tile(const QTiles& g, const Columns& k, const Start& s, std::int64_t row) {
  const QRows& t = g.rows;
  const std::int64_t stride = t.stride;
  SDX_REPEAT_6(SDX_TILE_DECLARE)
  const std::int16_t* HWY_RESTRICT a = t.a + row * stride;
  const std::int16_t* HWY_RESTRICT b = t.b;
  if constexpr (kCrossed) {
    for (std::int64_t p = t.pairs; p > 0; p -= 2) {
      const __m256i b00 = load(b), b01 = load(b + 16), b10 = load(b + 32), b11 = load(b + 48);
#define SDX_TILE_STEP(I)                                                                                 \
  if constexpr (M > I) {                                                                                 \
    const __m256i x = pair_of(a + I * stride);                                                           \
    const __m256i y = pair_of(a + I * stride + 2);                                                       \
    c##I = multiply_add(c##I, _mm256_add_epi16(x, b10), _mm256_add_epi16(y, b00));                       \
    if constexpr (!kHalf) e##I = multiply_add(e##I, _mm256_add_epi16(x, b11), _mm256_add_epi16(y, b01)); \
  }
      SDX_REPEAT_6(SDX_TILE_STEP)
#undef SDX_TILE_STEP
      a += 4;
      b += 64;
    }
  } else {
    // One index register for each row's distance would not fit.
    const std::int16_t* HWY_RESTRICT far = a + 3 * stride;
    for (std::int64_t p = t.pairs; p > 0; --p) {
      const __m256i b0 = load(b), b1 = load(b + 16);
#define SDX_TILE_STEP(I)                                                        \
  if constexpr (M > I) {                                                        \
    const __m256i x = pair_of(I < 3 ? a + I * stride : far + (I - 3) * stride); \
    c##I = multiply_add(c##I, x, b0);                                           \
    if constexpr (!kHalf) e##I = multiply_add(e##I, x, b1);                     \
  }
      SDX_REPEAT_6(SDX_TILE_STEP)
#undef SDX_TILE_STEP
      a += 2;
      far += 2;
      b += 32;
    }
  }
  std::uint8_t* y = g.y + row * g.ldc;
  SDX_TILE_STORE(0)
  SDX_TILE_STORE(2)
  SDX_TILE_STORE(4)
}

template <int M, bool kCrossed, bool kAdd, bool kPlain, bool kSigned, bool kHalf>
void whole_tiles(const QTiles& g, const Columns& k, const Start& s, std::int64_t stop) {
  Fetch fetch(g.ahead, g.ahead_bytes, stop / M);
  for (std::int64_t row = 0; row < stop; row += M) {
    fetch.part();
    tile<M, kCrossed, kAdd, kPlain, kSigned, kHalf>(g, k, s, row);
  }
}

// Computes tiles of 4 rows for crossed products, else of 6, and one tile of the remaining rows.
template <bool kCrossed, bool kAdd, bool kPlain, bool kSigned, bool kHalf>
void tiles(const QTiles& g, const Columns& k, const Start& s) {
  constexpr int kRows = kCrossed ? 4 : 6;
  const std::int64_t whole = g.rows.m / kRows * kRows;
  whole_tiles<kRows, kCrossed, kAdd, kPlain, kSigned, kHalf>(g, k, s, whole);
  switch (g.rows.m - whole) {
    case 1: return tile<1, kCrossed, kAdd, kPlain, kSigned, kHalf>(g, k, s, whole);
    case 2: return tile<2, kCrossed, kAdd, kPlain, kSigned, kHalf>(g, k, s, whole);
    case 3: return tile<3, kCrossed, kAdd, kPlain, kSigned, kHalf>(g, k, s, whole);
    case 4:
      if constexpr (!kCrossed) tile<4, kCrossed, kAdd, kPlain, kSigned, kHalf>(g, k, s, whole);
      return;
    case 5:
      if constexpr (!kCrossed) tile<5, kCrossed, kAdd, kPlain, kSigned, kHalf>(g, k, s, whole);
      return;
    default: return;
  }
}

// A single row uses each weight once. Two accumulators for each half hide the latency of the additions.
template <bool kPlain, bool kSigned>
void one_row(const QTiles& g, const Columns& k) {
  const auto widened = [](const std::int8_t* p)
                           HWY_ATTR { return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); };
  __m256i c0 = k.bias0, c1 = k.bias1;
  __m256i e0 = _mm256_setzero_si256(), e1 = e0;
  const std::int16_t* HWY_RESTRICT a = g.rows.a;
  const std::int8_t* HWY_RESTRICT b = g.narrow;
  for (std::int64_t p = 0; p < g.rows.pairs; p += 2, a += 4, b += 64) {  // an even number
    __builtin_prefetch(b + 1024, 0, 2);
    const __m256i x = pair_of(a), y = pair_of(a + 2);
    c0 = multiply_add(c0, x, widened(b));
    c1 = multiply_add(c1, x, widened(b + 16));
    e0 = multiply_add(e0, y, widened(b + 32));
    e1 = multiply_add(e1, y, widened(b + 48));
  }
  store_one<kSigned>(words_of<kPlain>(k, _mm256_add_epi32(c0, e0), _mm256_add_epi32(c1, e1)), g.y);
}

void to_bytes(const QTiles& g) {
  const Columns k = columns_of(*g.epilogue, g.column);
  if (g.narrow != nullptr) {
    return by_kind(k, [&](auto plain, auto is_signed) HWY_ATTR { one_row<plain, is_signed>(g, k); });
  }
  Start s{k.bias0, k.bias1};
  if (g.crossed && !g.rows.add) {
    s.first = _mm256_sub_epi32(s.first, load(g.rows.column_cross));
    s.second = _mm256_sub_epi32(s.second, load(g.rows.column_cross + 8));
  }
  by_kind(k, [&](auto plain, auto is_signed) HWY_ATTR {
    const auto run = [&](auto half) HWY_ATTR {
      if (g.crossed) {
        g.rows.add ? tiles<true, true, plain, is_signed, half>(g, k, s) : tiles<true, false, plain, is_signed, half>(g, k, s);
      } else {
        g.rows.add ? tiles<false, true, plain, is_signed, half>(g, k, s) : tiles<false, false, plain, is_signed, half>(g, k, s);
      }
    };
    g.half ? run(std::true_type()) : run(std::false_type());
  });
}

}  // namespace

QTilesKernel qtiles_table() { return to_bytes; }

#endif

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(QTilesKernel, qtiles_kernel, qtiles_table)
#endif
