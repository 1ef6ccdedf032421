#include "kernels/cpu/conv/int8/quant_quads_vnni.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(SDX_NO_AVX512)

// GCC 12's own headers start from registers that are deliberately left undefined (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include <cstring>

#include "kernels/cpu/simd/attributes.h"
#include "kernels/cpu/simd/repeat.h"

HWY_PUSH_ATTRIBUTES(SDX_AVX512_VNNI)
#include "kernels/cpu/conv/int8/quant_quads_bytes-inl.h"
#include "kernels/cpu/conv/int8/quant_quads_gather-inl.h"
#include "kernels/cpu/conv/int8/quant_quads_panel-inl.h"

namespace sdx::cpu {
namespace {

// Computes M rows; kHalf: only the first 16 columns.
template <int M, bool kHalf, bool kClamp>
void tile(const QQuadPanel& g, std::int64_t row, Ahead ahead) {
  const std::int64_t s = g.stride;
  const std::uint8_t* const first = g.a + row * s;
  const std::uint8_t* a[4] = {first, first + 3 * s, first + 6 * s, first + 9 * s};
  const std::int8_t* b = g.b;
  const QQuadFinish& f = *g.finish;
  const auto start = reinterpret_cast<Ints>(_mm512_load_si512(f.bias));
  const auto start_high = reinterpret_cast<Ints>(_mm512_load_si512(f.bias + 16));
#define SDX_DECLARE(I)    \
  Ints c##I = start;      \
  Ints e##I = start_high; \
  (void)c##I;             \
  (void)e##I;
  SDX_REPEAT_12(SDX_DECLARE)
  for (std::int64_t p = 0; p < g.quads; ++p) {
    const __m512i b0 = _mm512_loadu_si512(b);
    const __m512i b1 = kHalf ? b0 : _mm512_loadu_si512(b + 64);
#define SDX_STEP(I)                                                                                                   \
  if constexpr (M > I) {                                                                                              \
    int quad;                                                                                                         \
    std::memcpy(&quad, a[I / 3] + (I % 3) * s, sizeof(quad));                                                         \
    const __m512i v = _mm512_set1_epi32(quad);                                                                        \
    c##I = reinterpret_cast<Ints>(_mm512_dpbusd_epi32(reinterpret_cast<__m512i>(c##I), v, b0));                       \
    if constexpr (!kHalf) e##I = reinterpret_cast<Ints>(_mm512_dpbusd_epi32(reinterpret_cast<__m512i>(e##I), v, b1)); \
  }
    SDX_REPEAT_12(SDX_STEP)
    for (int i = 0; i < (M + 2) / 3; ++i) a[i] += 4;
    b += 128;
    __builtin_prefetch(ahead.at, 0, 2);
    ahead.at += ahead.step;
  }
  std::uint8_t* const y = g.y + row * g.ldc;
  const auto columns = static_cast<__mmask32>((std::uint64_t{1} << g.columns) - 1);
  SDX_STORE_12_ROWS
#undef SDX_STEP
#undef SDX_DECLARE
}

template <bool kHalf, bool kClamp>
void tile_of(const QQuadPanel& g, std::int64_t row, std::int64_t m, Ahead ahead) {
  switch (m) {
#define SDX_CASE(I) \
  case I + 1: return tile<I + 1, kHalf, kClamp>(g, row, ahead);
    SDX_REPEAT_12(SDX_CASE)
#undef SDX_CASE
    default: break;
  }
}

void panel(const QQuadPanel& g) {
  constexpr QuadTile kTiles[2][2] = {{tile_of<false, false>, tile_of<false, true>}, {tile_of<true, false>, tile_of<true, true>}};
  panel_by(g, kQuadRows, kQuadColumns, kTiles);
}

// Copying and filling may overwrite up to 63 bytes more.
struct Copy512 {
  __m512i flip, zero;
  explicit Copy512(const QSource& q)
      : flip(_mm512_set1_epi8(static_cast<char>(q.is_signed ? 0x80 : 0))),
        zero(_mm512_xor_si512(_mm512_set1_epi8(static_cast<char>(q.zero)), flip)) {}

  std::uint8_t* run(std::uint8_t* to, const std::uint8_t* from, std::int64_t n) const {
    std::int64_t i = 0;
    for (; i + 64 <= n; i += 64) _mm512_storeu_si512(to + i, _mm512_xor_si512(_mm512_loadu_si512(from + i), flip));
    if (n - i > 32) {
      const auto mask = ~std::uint64_t{0} >> (64 - (n - i));
      _mm512_storeu_si512(to + i, _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, from + i), flip));
    } else if (n > i) {
      const auto mask = static_cast<__mmask32>(~std::uint32_t{0} >> (32 - (n - i)));
      const __m256i v = _mm256_xor_si256(_mm256_maskz_loadu_epi8(mask, from + i), _mm512_castsi512_si256(flip));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), v);
    }
    return to + n;
  }

  std::uint8_t* padding(std::uint8_t* to, std::int64_t n) const {
    for (std::int64_t i = 0; i < n; i += 64) _mm512_storeu_si512(to + i, zero);
    return to + n;
  }

  void windows(const std::uint8_t* x, std::int64_t step, const std::int64_t* offsets, std::int64_t runs, std::int64_t bytes,
               std::int64_t count, std::uint8_t* to, std::int64_t row_bytes) const {
    if (bytes <= 32) {
      const auto mask = static_cast<__mmask32>(~std::uint32_t{0} >> (32 - bytes));
      for (std::int64_t i = 0; i < count; ++i, x += step, to += row_bytes) {
        for (std::int64_t r = 0; r < runs; ++r) {
          const __m256i v = _mm256_maskz_loadu_epi8(mask, x + offsets[r]);
          _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + r * bytes), _mm256_xor_si256(v, _mm512_castsi512_si256(flip)));
        }
      }
      return;
    }
    for (std::int64_t i = 0; i < count; ++i, x += step, to += row_bytes) {
      std::uint8_t* at = to;
      for (std::int64_t r = 0; r < runs; ++r) at = run(at, x + offsets[r], bytes);
    }
  }
};

void gather(const QQuadWindow& w, std::int64_t first, std::int64_t count, std::uint8_t* rows) {
  gather_by(Copy512(w.source), w, first, count, rows);
}

constexpr QQuadKernels kKernels = {kQuadColumns, panel, gather};

}  // namespace
}  // namespace sdx::cpu
HWY_POP_ATTRIBUTES

namespace sdx::cpu {
const QQuadKernels* qquad_avx512_kernels() { return &kKernels; }
}  // namespace sdx::cpu

#else

namespace sdx::cpu {
const QQuadKernels* qquad_avx512_kernels() { return nullptr; }
}  // namespace sdx::cpu

#endif
