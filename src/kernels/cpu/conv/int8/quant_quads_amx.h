#pragma once
// Multiplies rows of unsigned bytes by panels of quads of signed bytes with AMX's tdpbusd; internal to this folder.
//
// One instruction multiplies a tile of 16 rows of 64 bytes by a tile of 16 quads of 16 columns: 16,384 products in 16 cycles,
// eight times as many as vpdpbusd. Two tiles of rows and two of columns give four sums, so each loaded tile is used twice and no
// product waits for the one before it. If sums become bytes, those of one block do so between the products of the next block: for
// small K both take about as long.

#include <cstdint>

#include "kernels/cpu/conv/int8/quant_quads_vnni.h"
#include "kernels/cpu/simd/tiles.h"

namespace sdx::cpu {

constexpr std::int64_t kTileRows = 16, kTileBytes = 64;
constexpr std::int64_t kTileAllRows = std::int64_t{1} << 62;
constexpr std::int64_t kTileSlack = 15 * 4 * kQuadColumns;  // bytes after a panel that may be read

// The tiles for at most 16 rows: 0 to 3 hold sums, 4 and 5 rows, 6 and 7 columns.
inline TileConfig qtile_config(std::int64_t rows) {
  TileConfig config;
  for (int i = 0; i < 8; ++i) config.set(i, i < 6 ? rows : kTileBytes / 4, kTileBytes);
  return config;
}

struct QTilePanel {
  const std::uint8_t* a = nullptr;  // m rows, `stride` bytes apart
  std::int64_t stride = 0;
  std::int64_t m = 0;
  std::int64_t steps = 0;                // number of steps, each of kTileBytes of every row
  const std::int64_t* places = nullptr;  // offset of each step in bytes from the row's beginning; null: contiguous
  const std::uint8_t* tail = nullptr;    // [m][kTileBytes]: the rest of each row, padded with zeros; null: there is none
  const std::int8_t* b = nullptr;        // [quads][32][4]; kTileSlack bytes after the last quad may be read
  std::int64_t columns = kQuadColumns;   // how many of the 32 exist
  const QQuadFinish* finish = nullptr;   // bytes only
  std::uint8_t* y = nullptr;             // bytes only: the product's first row in these columns; rows are ldc apart
  std::int64_t ldc = 0;
  const char* ahead = nullptr;  // memory needed next, prefetched piece by piece
  std::int64_t ahead_bytes = 0;
  std::int64_t first = 0;  // bytes only: index of the first row in the product
  // Only the first `width` of each `line` rows of the product are stored.
  std::int64_t line = kTileAllRows, width = kTileAllRows;
};

struct QTileKernels {
  // Both need a TileScope of qtile_config(min(m, kTileRows)).
  void (*bytes)(const QTilePanel& p);
  void (*sums)(const QTilePanel& p, std::int32_t* out);  // [m][32], without biases
  // Clears bytes [k, width) of each row; width - k is below 64.
  void (*clear_ends)(std::uint8_t* rows, std::int64_t stride, std::int64_t count, std::int64_t k, std::int64_t width);
  // Copies the last k % 64 bytes of rows of k bytes to [count][64], padded with zeros.
  void (*copy_ends)(const std::uint8_t* rows, std::int64_t stride, std::int64_t count, std::int64_t k, std::uint8_t* to);
};

// Null if not compiled; does not check whether the machine has the instructions.
const QTileKernels* qtile_kernels();

}  // namespace sdx::cpu
