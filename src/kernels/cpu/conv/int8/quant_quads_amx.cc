#include "kernels/cpu/conv/int8/quant_quads_amx.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(SDX_NO_AVX512)

// GCC 12's own headers start from registers that are deliberately left undefined (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <algorithm>

#include "base/system/x86/tile_moves.h"
#include "kernels/cpu/conv/int8/quant_fetch.h"
#include "kernels/cpu/simd/attributes.h"
#include "kernels/cpu/simd/cuts.h"

HWY_PUSH_ATTRIBUTES(SDX_AMX_INT8)
#include "kernels/cpu/conv/int8/quant_quads_bytes-inl.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kStep = kTileBytes / 4 * kQuadColumns * 4;                 // bytes of a panel for 64 bytes of a row
constexpr std::int64_t kPanelRow = kQuadColumns * 4, kSumRow = kQuadColumns * 4;  // bytes

// Sums of a block of rows that have not become bytes yet.
struct Pending {
  const QQuadFinish* finish = nullptr;
  const std::int32_t* sums = nullptr;
  std::uint8_t* y = nullptr;
  std::int64_t ldc = 0;
  std::int64_t left = 0;  // rows
  __mmask32 columns = 0;
  std::int64_t line = 0, width = 0;  // as in QTilePanel
  std::int64_t at = 0;               // the next row's place in its line

  template <bool kClamp>
  __m512i row(std::int64_t from) const {
    const auto half = [&](std::int64_t i) { return reinterpret_cast<Ints>(_mm512_load_si512(sums + from + i)); };
    return words<kClamp>(*finish, half(0), half(16));
  }
  void put(__m256i v) {
    if (at < width) {
      store(y, columns, v);
      y += ldc;
    }
    if (++at == line) at = 0;
  }
  // Stores two rows.
  template <bool kClamp>
  void two() {
    const __m512i v = bytes_of(*finish, row<kClamp>(0), row<kClamp>(kQuadColumns));
    put(_mm512_castsi512_si256(v));
    put(_mm512_extracti64x4_epi64(v, 1));
    sums += 2 * kQuadColumns;
  }
  // Stores `pairs` times two rows.
  void some(std::int64_t pairs) {
    left -= 2 * pairs;
    if (finish->clamp) {
      for (; pairs > 0; --pairs) two<true>();
    } else {
      for (; pairs > 0; --pairs) two<false>();
    }
  }
  void all() {
    if (left > 1) some(left / 2);
    if (left == 0) return;
    const __m512i w = row<true>(0);
    put(_mm512_castsi512_si256(bytes_of(*finish, w, w)));
    left = 0;
  }
};

// Pending sums of `count` rows of the panel, from `from` on.
Pending pending_rows(const QTilePanel& p, const std::int32_t* sums, std::int64_t from, std::int64_t count) {
  const std::int64_t row = p.first + from, at = row % p.line, stored = row / p.line * p.width + std::min(at, p.width);
  const auto columns = static_cast<__mmask32>((std::uint64_t{1} << p.columns) - 1);
  return {p.finish, sums, p.y + stored * p.ldc, p.ldc, count, columns, p.line, p.width, at};
}

// Prefetches the next panel, evenly over the steps of this one. Without it, ResNet-50's stage of 7x7 pixels, which reads 15 MB of
// weights once each, waits for the third-level cache.
Fetch fetch_of(const QTilePanel& p) { return {p.ahead, p.ahead_bytes, up_div(p.m, 2 * kTileRows) * p.steps}; }

// One or two tiles of rows.
struct Rows {
  std::int64_t first = 0, second = -1;
};

// Multiplies 64 bytes of each row.
template <bool kTwoRows, bool kTwoColumns>
inline void step(const std::uint8_t* a0, const std::uint8_t* a1, std::int64_t stride, const std::int8_t* b) {
  _tile_loadd(6, b, kPanelRow);
  _tile_loadd(4, a0, stride);
  _tile_dpbusd(0, 4, 6);
  if constexpr (kTwoColumns) {
    _tile_loadd(7, b + 64, kPanelRow);
    _tile_dpbusd(1, 4, 7);
  }
  if constexpr (kTwoRows) {
    _tile_loadd(5, a1, stride);
    _tile_dpbusd(2, 5, 6);
    if constexpr (kTwoColumns) _tile_dpbusd(3, 5, 7);
  }
}

// Adds the products of the rows' tiles to `start` (32 values) and stores the sums at `out0` and `out1`, [tile rows][32] each.
// Turns pending sums, if there are any, into bytes meanwhile.
template <bool kTwoRows, bool kTwoColumns>
void multiply(const QTilePanel& p, Rows rows, const std::int32_t* start, std::int32_t* out0, std::int32_t* out1, Pending& pending,
              Fetch& fetch) {
  _tile_loadd(0, start, 0);
  if constexpr (kTwoColumns) _tile_loadd(1, start + 16, 0);
  if constexpr (kTwoRows) _tile_loadd(2, start, 0);
  if constexpr (kTwoRows && kTwoColumns) _tile_loadd(3, start + 16, 0);
  const std::uint8_t* const a0 = p.a + rows.first * p.stride;
  const std::uint8_t* const a1 = kTwoRows ? p.a + rows.second * p.stride : p.a;
  const std::int8_t* b = p.b;
  const std::int64_t steps = p.steps + (p.tail != nullptr ? 1 : 0);
  const std::int64_t pairs = steps > 0 ? (pending.left / 2 + steps - 1) / steps : 0;  // of rows for each step
  for (std::int64_t i = 0; i < p.steps; ++i, b += kStep) {
    const std::int64_t place = p.places != nullptr ? p.places[i] : i * kTileBytes;
    step<kTwoRows, kTwoColumns>(a0 + place, a1 + place, p.stride, b);
    fetch.part();
    if (pending.left > 1) pending.some(std::min(pairs, pending.left / 2));
  }
  if (p.tail != nullptr) {
    const std::uint8_t* second = kTwoRows ? p.tail + rows.second * kTileBytes : nullptr;
    step<kTwoRows, kTwoColumns>(p.tail + rows.first * kTileBytes, second, kTileBytes, b);
  }
  pending.all();
  _tile_stored(0, out0, kSumRow);
  if constexpr (kTwoColumns) _tile_stored(1, out0 + 16, kSumRow);
  if constexpr (kTwoRows) _tile_stored(2, out1, kSumRow);
  if constexpr (kTwoRows && kTwoColumns) _tile_stored(3, out1 + 16, kSumRow);
}

using Multiply = void (*)(const QTilePanel&, Rows, const std::int32_t*, std::int32_t*, std::int32_t*, Pending&, Fetch&);

Multiply multiply_of(bool two_rows, bool two_columns) {
  if (two_rows) return two_columns ? multiply<true, true> : multiply<true, false>;
  return two_columns ? multiply<false, true> : multiply<false, false>;
}

// Calls fn(rows) for each block. Tiles are whole: the last one begins earlier if it would extend past m.
template <class F>
void over_rows(std::int64_t m, F&& fn) {
  if (m <= kTileRows) return fn(Rows{});
  for (std::int64_t row = 0; row < m; row += 2 * kTileRows) {
    const std::int64_t left = m - row;
    Rows r{row, row + kTileRows};
    if (left <= kTileRows) r = {m - kTileRows, -1};
    if (left > kTileRows) r.second = std::min(r.second, m - kTileRows);
    fn(r);
  }
}

void bytes(const QTilePanel& p) {
  alignas(64) std::int32_t sums[2][2 * kTileRows * kQuadColumns];
  const std::int64_t tile_rows = std::min(p.m, kTileRows);
  const bool two_columns = p.columns > kQuadColumns / 2;
  Pending pending;
  Fetch fetch = fetch_of(p);
  int turn = 0;
  over_rows(p.m, [&](Rows r) {
    const bool two = r.second >= 0;
    // If two tiles overlap, so do their sums.
    const std::int64_t fresh = two ? r.second - r.first : 0;
    std::int32_t* const out = sums[turn];
    multiply_of(two, two_columns)(p, r, p.finish->bias, out, out + fresh * kQuadColumns, pending, fetch);
    pending = pending_rows(p, out, r.first, fresh + tile_rows);
    turn ^= 1;
  });
  pending.all();
}

void sums_of(const QTilePanel& p, std::int32_t* out) {
  alignas(64) static constexpr std::int32_t kNone[kQuadColumns] = {};
  const bool two_columns = p.columns > kQuadColumns / 2;
  Pending none;
  Fetch fetch = fetch_of(p);
  over_rows(p.m, [&](Rows r) {
    multiply_of(r.second >= 0, two_columns)(p, r, kNone, out + r.first * kQuadColumns,
                                            r.second < 0 ? nullptr : out + r.second * kQuadColumns, none, fetch);
  });
}

void clear_ends(std::uint8_t* rows, std::int64_t stride, std::int64_t count, std::int64_t k, std::int64_t width) {
  if (width == k) return;
  const __mmask64 mask = ~std::uint64_t{0} >> (64 - (width - k));
  for (std::int64_t i = 0; i < count; ++i) _mm512_mask_storeu_epi8(rows + i * stride + k, mask, _mm512_setzero_si512());
}

void copy_ends(const std::uint8_t* rows, std::int64_t stride, std::int64_t count, std::int64_t k, std::uint8_t* to) {
  const std::int64_t rest = k % kTileBytes;
  const __mmask64 mask = ~std::uint64_t{0} >> (64 - rest);
  const std::uint8_t* from = rows + k - rest;
  for (std::int64_t i = 0; i < count; ++i) {
    _mm512_store_si512(to + i * kTileBytes, _mm512_maskz_loadu_epi8(mask, from + i * stride));
  }
}

constexpr QTileKernels kKernels = {bytes, sums_of, clear_ends, copy_ends};

}  // namespace
}  // namespace sdx::cpu
HWY_POP_ATTRIBUTES

namespace sdx::cpu {
const QTileKernels* qtile_kernels() { return &kKernels; }
}  // namespace sdx::cpu

#else

namespace sdx::cpu {
const QTileKernels* qtile_kernels() { return nullptr; }
}  // namespace sdx::cpu

#endif
