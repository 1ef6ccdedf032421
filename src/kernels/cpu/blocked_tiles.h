#pragma once
// Tiles of Winograd convolutions that are computed together; internal to this folder.

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/conv.h"

namespace sdx::cpu {

// Where a tile lies.
struct Place {
  std::int64_t image;
  std::int64_t y, x;           // its first output
  std::int64_t rows, columns;  // of outputs inside the plane
};

constexpr std::int64_t kMostPlaces = 64;

// Tiles of t x t outputs, in an order in which those that have a point lie side by side. A tile at the end of an axis does
// without some points along it if it has fewer outputs there; that is the same number for all such tiles.
struct TileBlock {
  std::int64_t count;
  Place places[kMostPlaces];
  std::int64_t full_rows = 0;                           // places [0, full_rows) have all rows,
  std::int64_t full_columns = 0, full_columns_end = 0;  // these all columns
  std::int64_t cut_rows, cut_columns;                   // of outputs that the others have

  // Tiles [first, first + tiles) of the batch, at most kMostPlaces.
  TileBlock(std::int64_t t, const ConvShape& s, std::int64_t first, std::int64_t tiles) : count(tiles) {
    const std::int64_t tiles_y = (s.out[1] + t - 1) / t, tiles_x = (s.out[2] + t - 1) / t;
    cut_rows = (s.out[1] - 1) % t + 1;
    cut_columns = (s.out[2] - 1) % t + 1;
    std::int64_t image = first / (tiles_x * tiles_y);
    std::int64_t ty = first / tiles_x % tiles_y, tx = first % tiles_x;
    // All rows but not all columns, all of both, all columns alone, neither.
    Place parts[4][kMostPlaces];
    std::int64_t sizes[4] = {};
    for (std::int64_t i = 0; i < tiles; ++i) {
      const std::int64_t rows = ty + 1 < tiles_y ? t : cut_rows, columns = tx + 1 < tiles_x ? t : cut_columns;
      const int part = rows == t ? (columns == t ? 1 : 0) : (columns == t ? 2 : 3);
      parts[part][sizes[part]++] = {image, ty * t, tx * t, rows, columns};
      if (++tx < tiles_x) continue;
      tx = 0;
      if (++ty < tiles_y) continue;
      ty = 0;
      ++image;
    }
    Place* to = places;
    for (int part = 0; part < 4; ++part) to = std::copy_n(parts[part], sizes[part], to);
    full_columns = sizes[0];
    full_rows = sizes[0] + sizes[1];
    full_columns_end = full_rows + sizes[2];
  }

  struct Range {
    std::int64_t begin, end;
  };
  // The tiles that have a point along rows and one along columns: each is one that all tiles have, or full ones alone.
  Range with(bool any_rows, bool any_columns) const {
    return {any_columns ? 0 : full_columns, any_rows ? (any_columns ? count : full_columns_end) : full_rows};
  }
};

}  // namespace sdx::cpu
