#include "kernels/cpu/nbits/nbits_amx.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(SDX_NO_AVX512)

// GCC 12's own headers start from registers deliberately left undefined (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <cstring>

#include "base/system/x86/tile_moves.h"
#include "kernels/cpu/simd/attributes.h"

HWY_PUSH_ATTRIBUTES(SDX_AMX_INT8)

namespace sdx::cpu {
namespace {

constexpr std::int64_t kColumns = 16;       // of a tile
constexpr std::int64_t kRecordDigits = 12;  // bytes of a record before its digits (nbits_digits.h)
constexpr int kSums = 4;                    // tiles of sums, used in turn

// Zero points of 16 columns, each in all four bytes of its lane.
__m512i zero_bytes(const NBitsLayout& l, const std::uint32_t* block, std::int64_t half) {
  if (l.zeros == NBitsZeros::none) return _mm512_set1_epi8(8);
  const auto* zeros = reinterpret_cast<const std::uint8_t*>(block + l.nr) + half * kColumns;
  const __m512i wide = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(zeros)));
  return _mm512_mullo_epi32(wide, _mm512_set1_epi32(0x01010101));
}

void expand(const NBitsLayout& l, const NBitsRowFormat& f, const std::uint32_t* panel, std::int8_t* tiles) {
  const __m512i low = _mm512_set1_epi8(15);
  const std::int64_t tile = 2 * f.words * 64;
  for (std::int64_t b = 0; b < l.blocks; ++b) {
    const std::uint32_t* block = panel + b * l.block_units();
    const std::uint32_t* words = block + l.nr + l.zero_units();
    const __m512i zeros[2] = {zero_bytes(l, block, 0), zero_bytes(l, block, 1)};
    for (std::int64_t p = 0; p < f.parts; ++p, tiles += 2 * tile) {
      for (std::int64_t w = 0; w < f.words; ++w, words += l.nr) {
        for (int half = 0; half < 2; ++half) {
          const __m512i codes = _mm512_loadu_si512(words + half * kColumns);
          std::int8_t* to = tiles + half * tile + 2 * w * 64;
          _mm512_store_si512(to, _mm512_sub_epi8(_mm512_and_si512(codes, low), zeros[half]));
          _mm512_store_si512(to + 64, _mm512_sub_epi8(_mm512_and_si512(_mm512_srli_epi16(codes, 4), low), zeros[half]));
        }
      }
    }
  }
}

// Not __m512: GCC 12 spills arrays of that type.
using Floats = float __attribute__((vector_size(64)));

__m512 raw(Floats v) { return reinterpret_cast<__m512>(v); }
Floats of(__m512 v) { return reinterpret_cast<Floats>(v); }

// Tile numbers must be literals in the instructions.
#define SDX_MULTIPLY(SUM, ROWS, COLUMNS) \
  _tile_zero(SUM);                       \
  _tile_loadd(ROWS, digits, row_bytes);  \
  _tile_loadd(COLUMNS, tile, 64);        \
  _tile_dpbssd(SUM, ROWS, COLUMNS);      \
  _tile_stored(SUM, sums, 64)

void multiply(int turn, const std::byte* digits, std::int64_t row_bytes, const std::int8_t* tile, std::int32_t* sums) {
  switch (turn) {
    case 0: SDX_MULTIPLY(0, 4, 6); return;
    case 1: SDX_MULTIPLY(1, 5, 7); return;
    case 2: SDX_MULTIPLY(2, 4, 6); return;
    default: SDX_MULTIPLY(3, 5, 7); return;
  }
}
#undef SDX_MULTIPLY

// Products of one half of a panel, part by part. Sums are scaled three parts after their product, and pass through memory in the
// meantime.
struct Products {
  static constexpr std::int64_t kAhead = kSums - 1;
  const std::byte* digits;
  const std::int8_t* tile;
  std::int64_t row_bytes, record_bytes, tile_step, parts;
  std::int64_t begun = 0;
  alignas(64) std::int32_t sums[kSums][kNBitsTileRows * kColumns];

  Products(const NBitsLayout& l, const NBitsRowFormat& f, const std::int8_t* tiles, const std::byte* rows)
      : digits(rows + kRecordDigits),
        tile(tiles),
        row_bytes(f.row_bytes),
        record_bytes(f.record_bytes),
        tile_step(4 * f.words * 64),
        parts(l.blocks * f.parts) {
    while (begun < kAhead) begin();
  }
  void begin() {
    if (begun < parts) multiply(static_cast<int>(begun % kSums), digits, row_bytes, tile, sums[begun % kSums]);
    ++begun;
    digits += record_bytes;
    tile += tile_step;
  }
  // The sums of the oldest part not yet used.
  const std::int32_t* next() {
    begin();
    return sums[begun % kSums];
  }
};

__m512 value(const std::int32_t* sums, int row) { return _mm512_cvtepi32_ps(_mm512_load_si512(sums + row * kColumns)); }
__m512 scale_of(const std::byte* record, int row, std::int64_t row_bytes) {
  float scale;
  std::memcpy(&scale, record + row * row_bytes, 4);
  return _mm512_set1_ps(scale);
}

// One variable for each row: GCC 12 keeps an array of them in memory.
#define SDX_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define SDX_DECLARE(I) Floats r##I{};

// Scales and adds the sums, in the order of nbits_digits-inl.h: blocks of one part.
void blocks_of_one(Products& p, const NBitsLayout& l, const NBitsRowFormat& f, const std::uint32_t* panel,
                   const std::byte* record, float* out) {
  SDX_ROWS(SDX_DECLARE)
  for (std::int64_t b = 0; b < l.blocks; ++b, record += f.record_bytes, panel += l.block_units()) {
    const std::int32_t* sums = p.next();
    const __m512 scales = _mm512_loadu_ps(reinterpret_cast<const float*>(panel));
#define SDX_ADD(I) r##I = of(_mm512_fmadd_ps(_mm512_mul_ps(value(sums, I), scale_of(record, I, f.row_bytes)), scales, raw(r##I)));
    SDX_ROWS(SDX_ADD)
#undef SDX_ADD
  }
#define SDX_STORE(I) _mm512_storeu_ps(out + I * l.nr, raw(r##I));
  SDX_ROWS(SDX_STORE)
#undef SDX_STORE
}

// Blocks of several parts: registers hold one block's sums only.
void blocks_of_many(Products& p, const NBitsLayout& l, const NBitsRowFormat& f, const std::uint32_t* panel,
                    const std::byte* record, float* out) {
  for (std::int64_t b = 0; b < l.blocks; ++b, panel += l.block_units()) {
    SDX_ROWS(SDX_DECLARE)
    for (std::int64_t part = 0; part < f.parts; ++part, record += f.record_bytes) {
      const std::int32_t* sums = p.next();
#define SDX_ADD(I) r##I = of(_mm512_fmadd_ps(value(sums, I), scale_of(record, I, f.row_bytes), raw(r##I)));
      SDX_ROWS(SDX_ADD)
#undef SDX_ADD
    }
    const __m512 scales = _mm512_loadu_ps(reinterpret_cast<const float*>(panel));
#define SDX_STORE(I)               \
  _mm512_storeu_ps(out + I * l.nr, \
                   _mm512_fmadd_ps(raw(r##I), scales, b > 0 ? _mm512_loadu_ps(out + I * l.nr) : _mm512_setzero_ps()));
    SDX_ROWS(SDX_STORE)
#undef SDX_STORE
  }
}
#undef SDX_DECLARE
#undef SDX_ROWS

void panel(const NBitsLayout& l, const NBitsRowFormat& f, const std::uint32_t* panel, const std::int8_t* tiles,
           const std::byte* rows, float* out) {
  for (int half = 0; half < 2; ++half) {
    Products products(l, f, tiles + half * 2 * f.words * 64, rows);
    (f.parts == 1 ? blocks_of_one : blocks_of_many)(products, l, f, panel + half * kColumns, rows, out + half * kColumns);
  }
}

constexpr NBitsTileKernels kKernels = {expand, panel};

}  // namespace
}  // namespace sdx::cpu
HWY_POP_ATTRIBUTES

namespace sdx::cpu {
const NBitsTileKernels* nbits_tile_kernels() { return &kKernels; }
}  // namespace sdx::cpu

#else

namespace sdx::cpu {
const NBitsTileKernels* nbits_tile_kernels() { return nullptr; }
}  // namespace sdx::cpu

#endif
