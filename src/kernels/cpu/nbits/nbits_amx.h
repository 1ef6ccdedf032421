#pragma once
// Products of codes of 4 bits and one digit (nbits_digits.h) by AMX's tdpbssd; internal to this folder.
//
// One instruction multiplies a part of 16 rows by 16 columns: with 32 activations each, 8,192 products in 16 cycles. The sums
// bound the speed: they leave the tiles through memory and are scaled in 24 cycles. They are the same integers as those of
// NBitsDigitKernels, and where blocks are of one part, results are identical bit for bit. Of blocks with several parts, these
// kernels add the parts before the block's scale, which saves a third of the scaling; those for dot products scale each part,
// which saves registers: results may differ in the last digit.

#include <cstdint>

#include "kernels/cpu/nbits/nbits_digits.h"
#include "kernels/cpu/simd/tiles.h"

namespace sdx::cpu {

constexpr std::int64_t kNBitsTileRows = 16;

struct NBitsTileKernels {
  // A panel's codes minus their zero points, as bytes in tiles: [part][half of the columns][quads][16][4].
  void (*expand)(const NBitsLayout& layout, const NBitsRowFormat& format, const std::uint32_t* panel, std::int8_t* tiles);
  // out[i * nr + j] for kNBitsTileRows rows of one digit, within a TileScope of nbits_tile_config().
  void (*panel)(const NBitsLayout& layout, const NBitsRowFormat& format, const std::uint32_t* panel, const std::int8_t* tiles,
                const std::byte* rows, float* out);
};

// Tiles 0 to 3 are sums, 4 and 5 rows, 6 and 7 columns.
inline TileConfig nbits_tile_config(const NBitsRowFormat& f) {
  TileConfig config;
  for (int i = 0; i < 4; ++i) config.set(i, kNBitsTileRows, 64);
  for (int i = 4; i < 6; ++i) config.set(i, kNBitsTileRows, f.part);
  for (int i = 6; i < 8; ++i) config.set(i, f.part / 4, 64);
  return config;
}

// Codes of 4 bits without zero points or with integer ones, multiplied by one digit.
inline bool nbits_fits_tiles(const NBitsLayout& l, const NBitsRowFormat& f) {
  return l.bits == 4 && f.digits == 1 && l.nr == 32 && l.zeros != NBitsZeros::floats;
}
inline std::int64_t nbits_tile_bytes(const NBitsLayout& l) { return l.blocks * l.block * l.nr; }

// Null if not compiled; does not check whether the machine has the instructions.
const NBitsTileKernels* nbits_tile_kernels();

}  // namespace sdx::cpu
