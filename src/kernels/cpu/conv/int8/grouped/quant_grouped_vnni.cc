#include "kernels/cpu/conv/int8/grouped/quant_grouped_vnni.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(SDX_NO_AVX512)

// GCC 12's own headers start from registers that are deliberately left undefined (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include <cstring>

#include "kernels/cpu/simd/attributes.h"
#include "kernels/cpu/simd/repeat.h"

HWY_PUSH_ATTRIBUTES(SDX_AVX512_VNNI)
#include "kernels/cpu/conv/int8/quant_quads_bytes-inl.h"

namespace sdx::cpu {
namespace {

// The quad of input channels that each of 16 outputs needs.
template <bool kOrdered>
HWY_INLINE __m512i quad_of(const std::uint8_t* pixel, __m512i order, __mmask16 there) {
  if constexpr (kOrdered) return _mm512_permutexvar_epi32(order, _mm512_maskz_loadu_epi32(there, pixel));
  int quad;
  std::memcpy(&quad, pixel, sizeof(quad));
  return _mm512_set1_epi32(quad);
}

// Computes M pixels from `row` on. kOrdered: QGroupedPanel::order is set; kHalf: only the first vector.
template <int M, bool kOrdered, bool kHalf, bool kClamp>
void tile(const QGroupedPanel& g, std::int64_t row) {
  const __m512i flip = _mm512_set1_epi8(static_cast<char>(g.flip ? 0x80 : 0));
  const std::int8_t* b = g.b;
  Ints start = {}, start_high = {};
  if (g.sums == nullptr) {
    start = reinterpret_cast<Ints>(_mm512_load_si512(g.finish->bias));
    start_high = reinterpret_cast<Ints>(_mm512_load_si512(g.finish->bias + 16));
  }
#define SDX_DECLARE(I)    \
  Ints c##I = start;      \
  Ints e##I = start_high; \
  (void)c##I;             \
  (void)e##I;
  SDX_REPEAT_12(SDX_DECLARE)
  for (std::int64_t t = 0; t < g.taps; ++t) {
    const std::uint8_t* const* const at = g.pixels + t * g.m + row;
    for (std::int64_t j = 0; j < g.quads; ++j, b += 128) {
      const __m512i b0 = _mm512_loadu_si512(b), b1 = _mm512_loadu_si512(b + 64);
      const __m512i order = kOrdered ? _mm512_loadu_si512(g.order + j * 16) : flip;
      const std::int64_t first = g.offset[0] + (kOrdered ? 0 : 4 * j), second = g.offset[1] + (kOrdered ? 0 : 4 * j);
#define SDX_STEP(I)                                                                                   \
  if constexpr (M > I) {                                                                              \
    const __m512i v = _mm512_xor_si512(quad_of<kOrdered>(at[I] + first, order, g.there[0]), flip);    \
    c##I = reinterpret_cast<Ints>(_mm512_dpbusd_epi32(reinterpret_cast<__m512i>(c##I), v, b0));       \
    if constexpr (!kHalf) {                                                                           \
      const __m512i u = _mm512_xor_si512(quad_of<kOrdered>(at[I] + second, order, g.there[1]), flip); \
      e##I = reinterpret_cast<Ints>(_mm512_dpbusd_epi32(reinterpret_cast<__m512i>(e##I), u, b1));     \
    }                                                                                                 \
  }
      SDX_REPEAT_12(SDX_STEP)
    }
  }
  if (g.sums != nullptr) {
#define SDX_KEEP(I)                                                                     \
  if constexpr (M > I) {                                                                \
    _mm512_storeu_si512(g.sums + (row + I) * 32, reinterpret_cast<__m512i>(c##I));      \
    _mm512_storeu_si512(g.sums + (row + I) * 32 + 16, reinterpret_cast<__m512i>(e##I)); \
  }
    SDX_REPEAT_12(SDX_KEEP)
    return;
  }
  const QQuadFinish& f = *g.finish;
  std::uint8_t* const y = g.y + row * g.ldc;
  const auto columns = static_cast<__mmask32>((std::uint64_t{1} << g.columns) - 1);
  SDX_STORE_12_ROWS
#undef SDX_KEEP
#undef SDX_STEP
#undef SDX_DECLARE
}

template <bool kOrdered, bool kHalf, bool kClamp>
void tile_of(const QGroupedPanel& g, std::int64_t row, std::int64_t m) {
  switch (m) {
#define SDX_CASE(I) \
  case I + 1: return tile<I + 1, kOrdered, kHalf, kClamp>(g, row);
    SDX_REPEAT_12(SDX_CASE)
#undef SDX_CASE
    default: break;
  }
}

void panel(const QGroupedPanel& g) {
  constexpr void (*kTiles[2][2][2])(const QGroupedPanel&, std::int64_t, std::int64_t) = {
      {{tile_of<false, false, false>, tile_of<false, false, true>}, {tile_of<false, true, false>, tile_of<false, true, true>}},
      {{tile_of<true, false, false>, tile_of<true, false, true>}, {tile_of<true, true, false>, tile_of<true, true, true>}}};
  const bool clamp = g.sums == nullptr && g.finish->clamp;
  const auto run = kTiles[g.order != nullptr ? 1 : 0][g.columns <= kQuadColumns / 2 ? 1 : 0][clamp ? 1 : 0];
  const std::int64_t count = (g.m + kGroupedRows - 1) / kGroupedRows;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = g.m * i / count;
    run(g, row, g.m * (i + 1) / count - row);
  }
}

}  // namespace
}  // namespace sdx::cpu
HWY_POP_ATTRIBUTES

namespace sdx::cpu {
QGroupedFn qgrouped_avx512() { return panel; }
}  // namespace sdx::cpu

#else

namespace sdx::cpu {
QGroupedFn qgrouped_avx512() { return nullptr; }
}  // namespace sdx::cpu

#endif
