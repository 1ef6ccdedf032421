// Kernels for AVX-VNNI: vpdpbusd on 256 bits, for processors without AVX-512.

#include "kernels/cpu/conv/int8/quant_nhwc_vnni.h"
#include "kernels/cpu/conv/int8/quant_quads_vnni.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <cstring>
#include <utility>

#include "kernels/cpu/simd/attributes.h"
#include "kernels/cpu/simd/repeat.h"

HWY_PUSH_ATTRIBUTES(SDX_AVX_VNNI)
#include "kernels/cpu/conv/int8/quant_quads_gather-inl.h"
#include "kernels/cpu/conv/int8/quant_quads_panel-inl.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kRows = 6, kColumns = 16;  // of a tile: its 12 sums leave four registers

// Not __m256i: GCC 12 spills accumulators of that type, which halves the speed.
using Ints = int __attribute__((vector_size(32)));

inline __m256i load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
inline void store(void* p, __m256i v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }
inline void store_half(void* p, __m128i v) { _mm_storeu_si128(static_cast<__m128i*>(p), v); }
inline __m256i quad_of(const std::uint8_t* p) {
  int quad;
  std::memcpy(&quad, p, sizeof(quad));
  return _mm256_set1_epi32(quad);
}

inline Ints added(Ints sums, __m256i bytes, __m256i weights) {
  return reinterpret_cast<Ints>(_mm256_dpbusd_avx_epi32(reinterpret_cast<__m256i>(sums), bytes, weights));
}

// Sums of M rows, in variables of their own: c0 and e0 to c5 and e5.
#define SDX_DECLARE(I) \
  Ints c##I = low;     \
  Ints e##I = high;    \
  (void)c##I;          \
  (void)e##I;
#define SDX_STEP(I)                                  \
  if constexpr (M > I) {                             \
    const __m256i v = quad_of(a##I);                 \
    c##I = added(c##I, v, b0);                       \
    if constexpr (!kHalf) e##I = added(e##I, v, b1); \
    a##I += 4;                                       \
  }

struct Finish {
  __m256 low, high;
  __m256i zero;
  const float* scale;
};

template <bool kClamp>
inline __m256i rounded(const Finish& f, Ints sums, const float* scale) {
  __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(reinterpret_cast<__m256i>(sums)), _mm256_load_ps(scale));
  if constexpr (kClamp) v = _mm256_min_ps(_mm256_max_ps(v, f.low), f.high);
  return _mm256_cvtps_epi32(v);
}

// 16 sums as int16; groups of four in the order 0 2 1 3.
template <bool kClamp>
inline __m256i words(const Finish& f, Ints c, Ints e) {
  return _mm256_adds_epi16(_mm256_packs_epi32(rounded<kClamp>(f, c, f.scale), rounded<kClamp>(f, e, f.scale + 8)), f.zero);
}

// Two rows of words as bytes, the first in the lower half.
inline __m256i bytes_of(bool is_signed, __m256i w0, __m256i w1) {
  const __m256i v = is_signed ? _mm256_packs_epi16(w0, w1) : _mm256_packus_epi16(w0, w1);
  return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

inline void put(const QQuadPanel& g, std::uint8_t* y, __m128i v) {
  if (g.columns == kColumns) return store_half(y, v);
  alignas(16) std::uint8_t all[kColumns];
  store_half(all, v);
  std::memcpy(y, all, static_cast<std::size_t>(g.columns));
}

// Computes M rows; kHalf: only the first 8 columns.
template <int M, bool kHalf, bool kClamp>
void tile(const QQuadPanel& g, std::int64_t row, Ahead ahead) {
  const std::int64_t s = g.stride;
  const std::uint8_t* a0 = g.a + row * s;
  const std::uint8_t *a1 = a0 + (M > 1 ? s : 0), *a2 = a0 + (M > 2 ? 2 * s : 0), *a3 = a0 + (M > 3 ? 3 * s : 0);
  const std::uint8_t *a4 = a0 + (M > 4 ? 4 * s : 0), *a5 = a0 + (M > 5 ? 5 * s : 0);
  const std::int8_t* b = g.b;
  const QQuadFinish& q = *g.finish;
  const auto low = reinterpret_cast<Ints>(load(q.bias)), high = reinterpret_cast<Ints>(load(q.bias + 8));
  SDX_REPEAT_6(SDX_DECLARE)
  for (std::int64_t p = 0; p < g.quads; ++p, b += 4 * kColumns) {
    const __m256i b0 = load(b), b1 = kHalf ? b0 : load(b + 32);
    SDX_REPEAT_6(SDX_STEP)
    __builtin_prefetch(ahead.at, 0, 2);
    ahead.at += ahead.step;
  }
  const Finish f{_mm256_set1_ps(q.low), _mm256_set1_ps(q.high), _mm256_set1_epi16(static_cast<short>(q.zero_point)), q.scale};
  std::uint8_t* const y = g.y + row * g.ldc;
#define SDX_STORE(I, J)                                                                                  \
  if constexpr (M > J) {                                                                                 \
    const __m256i v = bytes_of(q.is_signed, words<kClamp>(f, c##I, e##I), words<kClamp>(f, c##J, e##J)); \
    put(g, y + I * g.ldc, _mm256_castsi256_si128(v));                                                    \
    put(g, y + J * g.ldc, _mm256_extracti128_si256(v, 1));                                               \
  } else if constexpr (M > I) {                                                                          \
    const __m256i w = words<kClamp>(f, c##I, e##I);                                                      \
    put(g, y + I * g.ldc, _mm256_castsi256_si128(bytes_of(q.is_signed, w, w)));                          \
  }
  SDX_STORE(0, 1)
  SDX_STORE(2, 3)
  SDX_STORE(4, 5)
#undef SDX_STORE
}

template <bool kHalf, bool kClamp>
void tile_of(const QQuadPanel& g, std::int64_t row, std::int64_t m, Ahead ahead) {
  switch (m) {
#define SDX_CASE(I) \
  case I + 1: return tile<I + 1, kHalf, kClamp>(g, row, ahead);
    SDX_REPEAT_6(SDX_CASE)
#undef SDX_CASE
    default: break;
  }
}

void panel(const QQuadPanel& g) {
  constexpr QuadTile kTiles[2][2] = {{tile_of<false, false>, tile_of<false, true>}, {tile_of<true, false>, tile_of<true, true>}};
  panel_by(g, kRows, kColumns, kTiles);
}

// Computes M rows of int32 sums.
template <int M>
void rows_product(const QRows& t) {
  constexpr bool kHalf = false;
  const std::int64_t s = 2 * t.stride;
  const auto* a0 = reinterpret_cast<const std::uint8_t*>(t.a);
  const std::uint8_t *a1 = a0 + (M > 1 ? s : 0), *a2 = a0 + (M > 2 ? 2 * s : 0), *a3 = a0 + (M > 3 ? 3 * s : 0);
  const std::uint8_t *a4 = a0 + (M > 4 ? 4 * s : 0), *a5 = a0 + (M > 5 ? 5 * s : 0);
  const auto* b = reinterpret_cast<const std::int8_t*>(t.b);
  const Ints low = {}, high = {};
  SDX_REPEAT_6(SDX_DECLARE)
#define SDX_LOAD(I)                                                 \
  if constexpr (M > I) {                                            \
    c##I = reinterpret_cast<Ints>(load(t.sums + kColumns * I));     \
    e##I = reinterpret_cast<Ints>(load(t.sums + kColumns * I + 8)); \
  }
  if (t.add) {
    SDX_REPEAT_6(SDX_LOAD)
  }
#undef SDX_LOAD
  for (std::int64_t p = 0; p < t.pairs; ++p, b += 4 * kColumns) {
    const __m256i b0 = load(b), b1 = load(b + 32);
    SDX_REPEAT_6(SDX_STEP)
  }
#define SDX_STORE(I)                                                   \
  if constexpr (M > I) {                                               \
    store(t.sums + kColumns * I, reinterpret_cast<__m256i>(c##I));     \
    store(t.sums + kColumns * I + 8, reinterpret_cast<__m256i>(e##I)); \
  }
  SDX_REPEAT_6(SDX_STORE)
#undef SDX_STORE
}
#undef SDX_STEP
#undef SDX_DECLARE

// Copying and filling may overwrite up to 31 bytes more. Reads stop where the source ends.
struct Copy256 {
  __m256i flip, zero;
  const std::uint8_t* end;
  explicit Copy256(const QSource& q)
      : flip(_mm256_set1_epi8(static_cast<char>(q.is_signed ? 0x80 : 0))),
        zero(_mm256_xor_si256(_mm256_set1_epi8(static_cast<char>(q.zero)), flip)),
        end(q.end) {}

  std::uint8_t* run(std::uint8_t* to, const std::uint8_t* from, std::int64_t n) const {
    std::int64_t i = 0;
    for (; i < n && end - (from + i) >= 32; i += 32) store(to + i, _mm256_xor_si256(load(from + i), flip));
    if (i < n) {
      alignas(32) std::uint8_t last[32] = {};
      std::memcpy(last, from + i, static_cast<std::size_t>(n - i));
      store(to + i, _mm256_xor_si256(load(last), flip));
    }
    return to + n;
  }

  std::uint8_t* padding(std::uint8_t* to, std::int64_t n) const {
    for (std::int64_t i = 0; i < n; i += 32) store(to + i, zero);
    return to + n;
  }

  void windows(const std::uint8_t* x, std::int64_t step, const std::int64_t* offsets, std::int64_t runs, std::int64_t bytes,
               std::int64_t count, std::uint8_t* to, std::int64_t row_bytes) const {
    for (std::int64_t i = 0; i < count; ++i, x += step, to += row_bytes) {
      std::uint8_t* at = to;
      for (std::int64_t r = 0; r < runs; ++r) at = run(at, x + offsets[r], bytes);
    }
  }
};

void gather(const QQuadWindow& w, std::int64_t first, std::int64_t count, std::uint8_t* rows) {
  gather_by(Copy256(w.source), w, first, count, rows);
}

constexpr QQuadKernels kKernels = {kColumns, panel, gather};

}  // namespace
}  // namespace sdx::cpu
HWY_POP_ATTRIBUTES

namespace sdx::cpu {
namespace {

template <std::size_t... kIndex>
QRowsProduct choose_rows(std::int64_t m, std::index_sequence<kIndex...>) {
  constexpr QRowsProduct kTable[] = {rows_product<static_cast<int>(kIndex) + 1>...};
  return kTable[m - 1];
}

}  // namespace

const QQuadKernels* qquad_avx2_kernels() { return &kKernels; }
QRowsProduct qnhwc_avx_vnni_quads(std::int64_t m) { return choose_rows(m, std::make_index_sequence<6>()); }

}  // namespace sdx::cpu

#else

namespace sdx::cpu {

const QQuadKernels* qquad_avx2_kernels() { return nullptr; }
QRowsProduct qnhwc_avx_vnni_quads(std::int64_t) { return nullptr; }

}  // namespace sdx::cpu

#endif
