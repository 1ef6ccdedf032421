#include "kernels/cpu/gemm/gemm_split.h"

#include "base/system/amx.h"
#include "kernels/cpu/simd/cuts.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(SDX_NO_AVX512)

// GCC 12's own headers start from registers that are deliberately left undefined (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <algorithm>

#include "base/system/x86/tile_moves.h"
#include "kernels/cpu/simd/attributes.h"

HWY_PUSH_ATTRIBUTES(SDX_AMX_BF16)

namespace sdx::cpu {
namespace {

constexpr std::int64_t kTile = 512, kPart = 2 * kTile;  // bfloat16

using Floats = __m512;

inline __m512i bits(Floats x) { return _mm512_castps_si512(x); }

// The part of x that its upper 16 bits leave out.
inline Floats rest_of(Floats x) {
  return _mm512_sub_ps(x, _mm512_castsi512_ps(_mm512_and_si512(bits(x), _mm512_set1_epi32(static_cast<int>(0xFFFF0000)))));
}

// The upper halves of 32 floats, in order.
inline __m512i in_order(Floats a, Floats b) {
  alignas(64) static constexpr std::uint16_t kOdd[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
                                                         33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
  return _mm512_permutex2var_epi16(bits(a), _mm512_load_si512(kOdd), bits(b));
}

// The upper 16 bits of a and b alternately: pairs of rows, as tiles of the right operand have them.
inline __m512i in_turns(Floats a, Floats b) {
  return _mm512_mask_blend_epi16(0xAAAAAAAA, _mm512_srli_epi32(bits(a), 16), bits(b));
}

// Writes the three parts of a and b, and adds to `seen` what becomes NaN if any of them is infinite or NaN.
template <__m512i (*join)(Floats, Floats)>
inline void split(Floats a, Floats b, std::uint16_t* to, Floats& seen) {
  _mm512_store_si512(to, join(a, b));
  a = rest_of(a);
  b = rest_of(b);
  _mm512_store_si512(to + kPart, join(a, b));
  a = rest_of(a);
  b = rest_of(b);
  _mm512_store_si512(to + 2 * kPart, join(a, b));
  seen = _mm512_add_ps(seen, _mm512_add_ps(a, b));
}

inline bool is_finite(Floats seen) { return _mm512_cmp_ps_mask(seen, seen, _CMP_UNORD_Q) == 0; }

inline std::uint16_t* place_of(const SplitRows& rows, std::int64_t row) {
  const std::int64_t block = row / kSplitRows, tile = row / 16 % 2;
  return rows.to + block * split_steps(rows.k) * kSplitBlock + tile * kTile + row % 16 * kSplitStep;
}

inline __mmask16 first(std::int64_t count) {
  return static_cast<__mmask16>((std::uint32_t{1} << std::clamp<std::int64_t>(count, 0, 16)) - 1);
}

void split_rows(SplitRows& rows, const float* a, std::int64_t lda, std::int64_t row, std::int64_t m) {
  Floats seen = _mm512_setzero_ps();
  const std::int64_t whole = rows.k / kSplitStep * kSplitStep;
  for (std::int64_t i = 0; i < m; ++i) {
    const float* x = a + i * lda;
    std::uint16_t* to = place_of(rows, row + i);
    for (std::int64_t k = 0; k < whole; k += kSplitStep, to += kSplitBlock) {
      split<in_order>(_mm512_loadu_ps(x + k), _mm512_loadu_ps(x + k + 16), to, seen);
    }
    if (whole < rows.k) {
      const std::int64_t left = rows.k - whole;
      split<in_order>(_mm512_maskz_loadu_ps(first(left), x + whole), _mm512_maskz_loadu_ps(first(left - 16), x + whole + 16), to,
                      seen);
    }
  }
  rows.finite = rows.finite && is_finite(seen);
}

// Rows of 16 floats become columns.
inline void transpose(Floats (&r)[16]) {
  __m512i t[16];
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_epi32(bits(r[2 * i]), bits(r[2 * i + 1]));
    t[2 * i + 1] = _mm512_unpackhi_epi32(bits(r[2 * i]), bits(r[2 * i + 1]));
  }
  __m512i u[16];
  for (int i = 0; i < 4; ++i) {
    u[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    u[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    u[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    u[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    const __m512i low = _mm512_shuffle_i32x4(u[i], u[4 + i], 0x88), high = _mm512_shuffle_i32x4(u[i], u[4 + i], 0xDD);
    const __m512i low2 = _mm512_shuffle_i32x4(u[8 + i], u[12 + i], 0x88), high2 = _mm512_shuffle_i32x4(u[8 + i], u[12 + i], 0xDD);
    r[i] = _mm512_castsi512_ps(_mm512_shuffle_i32x4(low, low2, 0x88));
    r[4 + i] = _mm512_castsi512_ps(_mm512_shuffle_i32x4(high, high2, 0x88));
    r[8 + i] = _mm512_castsi512_ps(_mm512_shuffle_i32x4(low, low2, 0xDD));
    r[12 + i] = _mm512_castsi512_ps(_mm512_shuffle_i32x4(high, high2, 0xDD));
  }
}

void split_tile(SplitRows& rows, const float* a, std::int64_t step, std::int64_t row, std::int64_t m) {
  Floats seen = _mm512_setzero_ps();
  const __mmask16 some = first(m);
  std::uint16_t* to[16];
  for (std::int64_t i = 0; i < m; ++i) to[i] = place_of(rows, row + i);
  for (std::int64_t k = 0; k < rows.k; k += kSplitStep) {
    Floats x[16], y[16];
    for (std::int64_t i = 0; i < 16; ++i) {
      x[i] = k + i < rows.k ? _mm512_maskz_loadu_ps(some, a + (k + i) * step) : _mm512_setzero_ps();
      y[i] = k + 16 + i < rows.k ? _mm512_maskz_loadu_ps(some, a + (k + 16 + i) * step) : _mm512_setzero_ps();
    }
    transpose(x);
    transpose(y);
    for (std::int64_t i = 0; i < m; ++i) {
      split<in_order>(x[i], y[i], to[i], seen);
      to[i] += kSplitBlock;
    }
  }
  rows.finite = rows.finite && is_finite(seen);
}

void split_chunks(SplitRows& rows, const float* const* x, const std::int64_t* chunks, std::int64_t row, std::int64_t m) {
  Floats seen = _mm512_setzero_ps();
  std::uint16_t* to = place_of(rows, row);
  const std::int64_t count = rows.k / 16;
  // Steps outside: neighbouring pixels and the rows of a tile lie next to each other.
  for (std::int64_t c = 0; c < count; c += 2, to += kSplitBlock) {
    const bool two = c + 1 < count;
    for (std::int64_t i = 0; i < m; ++i) {
      const Floats second = two ? _mm512_loadu_ps(x[i] + chunks[c + 1]) : _mm512_setzero_ps();
      split<in_order>(_mm512_loadu_ps(x[i] + chunks[c]), second, to + i * kSplitStep, seen);
    }
  }
  rows.finite = rows.finite && is_finite(seen);
}

void clear_rest(SplitRows& rows, std::int64_t m) {
  for (; m % 16 != 0; ++m) {
    std::uint16_t* to = place_of(rows, m);
    for (std::int64_t s = split_steps(rows.k); s > 0; --s, to += kSplitBlock) {
      for (int part = 0; part < 3; ++part) _mm512_store_si512(to + part * kPart, _mm512_setzero_si512());
    }
  }
}

inline void split_panel(SplitPanel& p, std::int64_t pairs) {
  constexpr std::int64_t kPairs = kSplitStep / 2;
  const std::int64_t all = split_steps(p.k) * kPairs, stop = std::min(all, p.done + pairs);
  if (p.done >= stop) return;
  Floats seen = _mm512_setzero_ps();
  const Floats none = _mm512_setzero_ps();
  for (std::int64_t i = p.done; i < stop; ++i) {
    const float* b = p.b + 2 * i * kSplitColumns;
    std::uint16_t* to = p.to + i / kPairs * kSplitBlock + i % kPairs * 32;
    const bool one = 2 * i < p.k, two = 2 * i + 1 < p.k;
    for (int j = 0; j < (p.two_columns ? 2 : 1); ++j) {
      _mm_prefetch(reinterpret_cast<const char*>(b + p.fetch + 16 * j), _MM_HINT_T1);
      _mm_prefetch(reinterpret_cast<const char*>(b + p.fetch + 16 * j + kSplitColumns), _MM_HINT_T1);
      const Floats x = one ? _mm512_loadu_ps(b + 16 * j) : none, y = two ? _mm512_loadu_ps(b + 16 * j + kSplitColumns) : none;
      split<in_turns>(x, y, to + j * kTile, seen);
    }
  }
  p.done = stop;
  p.finite = p.finite && is_finite(seen);
}

template <bool kTwoRows, bool kTwoColumns>
inline void load_left(const std::uint16_t* a) {
  _tile_loadd(4, a, 64);
  if constexpr (kTwoRows) _tile_loadd(5, a + kTile, 64);
}

template <bool kTwoRows, bool kTwoColumns>
inline void load_right(const std::uint16_t* b) {
  _tile_loadd(6, b, 64);
  if constexpr (kTwoColumns) _tile_loadd(7, b + kTile, 64);
}

template <bool kTwoRows, bool kTwoColumns>
inline void multiply_add() {
  _tile_dpbf16ps(0, 4, 6);
  if constexpr (kTwoColumns) _tile_dpbf16ps(1, 4, 7);
  if constexpr (kTwoRows) _tile_dpbf16ps(2, 5, 6);
  if constexpr (kTwoRows && kTwoColumns) _tile_dpbf16ps(3, 5, 7);
}

template <bool kTwoRows, bool kTwoColumns>
void product(const SplitProduct& p, SplitPanel& next, std::int64_t pairs) {
  constexpr auto left = load_left<kTwoRows, kTwoColumns>;
  constexpr auto right = load_right<kTwoRows, kTwoColumns>;
  constexpr auto add = multiply_add<kTwoRows, kTwoColumns>;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  // Low by high, middle by high, middle by middle, high by middle, high by low.
  for (std::int64_t s = 0; s < p.steps; ++s) {
    const std::uint16_t *a = p.a + s * kSplitBlock, *b = p.b + s * kSplitBlock;
    left(a + 2 * kPart);
    right(b);
    add();
    left(a + kPart);
    add();
    split_panel(next, pairs);
    right(b + kPart);
    add();
    left(a);
    add();
    right(b + 2 * kPart);
    add();
  }
  for (std::int64_t s = 0; s < p.steps; ++s) {
    left(p.a + s * kSplitBlock);
    right(p.b + s * kSplitBlock);
    add();
  }
  constexpr std::int64_t kRow = kSplitColumns * 4;  // bytes
  _tile_stored(0, p.sums, kRow);
  if constexpr (kTwoColumns) _tile_stored(1, p.sums + 16, kRow);
  if constexpr (kTwoRows) _tile_stored(2, p.sums + 16 * kSplitColumns, kRow);
  if constexpr (kTwoRows && kTwoColumns) _tile_stored(3, p.sums + 16 * kSplitColumns + 16, kRow);
}

void multiply(const SplitProduct& p, SplitPanel& next, std::int64_t pairs) {
  if (p.two_rows) return p.two_columns ? product<true, true>(p, next, pairs) : product<true, false>(p, next, pairs);
  return p.two_columns ? product<false, true>(p, next, pairs) : product<false, false>(p, next, pairs);
}

constexpr SplitKernels kKernels = {split_rows, split_tile, split_chunks, clear_rest, split_panel, multiply};

}  // namespace
}  // namespace sdx::cpu
HWY_POP_ATTRIBUTES

namespace sdx::cpu {
const SplitKernels* split_kernels() { return use_amx_bf16() ? &kKernels : nullptr; }
}  // namespace sdx::cpu

#else

namespace sdx::cpu {
const SplitKernels* split_kernels() { return nullptr; }
}  // namespace sdx::cpu

#endif

namespace sdx::cpu {
bool split_pays(std::int64_t m, std::int64_t n, std::int64_t k, double left) {
  if (m < 16 || k < kSplitStep || split_kernels() == nullptr) return false;
  const auto rows = static_cast<double>(m), columns = static_cast<double>(n), whole = static_cast<double>(round_up(m, 16));
  return 0.62 * whole / rows * (1.0 + left / columns + 12.0 / rows) < 0.95;
}
}  // namespace sdx::cpu
