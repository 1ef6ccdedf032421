#pragma once
// The per-target register tiles of convolutions over blocked channels; internal to this folder.

#include <cstdint>

namespace sdx::cpu {

// Register tiles: `pixels` neighbouring output pixels times one or two vectors of output channels. The input of pixel p is at
// x + p * pixel_step; from there the taps are [blocks][rows][taps][run] with the run contiguous, and [rows][tail_taps][tail_run]
// of the last, partly filled block. The weights are stored in that order, one or two vectors per element.
struct BlockedTile {
  const float* x = nullptr;
  std::int64_t pixel_step = 0, block_step = 0, row_step = 0, tap_step = 0;
  std::int64_t blocks = 0, rows = 1, taps = 1, run = 0;
  std::int64_t tail_taps = 0, tail_run = 0;
  // Taps of the stored window that are left out, in each block: before the first row, after each row, and after the last one. A
  // tap has `tap_weights` weights for each output in whole blocks.
  std::int64_t skip_before = 0, skip_row = 0, skip_after = 0, tap_weights = 0;
  const float* w = nullptr;
  const float* bias = nullptr;    // of the tile's vectors of channels
  float* y[2] = {};               // of each vector's first pixel; the next pixel is a block further
  const float* residual[2] = {};  // null: none
  float lo = 0, hi = 0;           // bounds of the result
  std::int64_t pixels = 0;        // 1 .. wide_pixels or narrow_pixels
  bool wide = true;               // two vectors
  // If not null: instead, `run` single elements of one tap, at these offsets from x.
  const std::int64_t* list = nullptr;
  // For a tile with `list` that is not wide: the number of such lists, which follow each other, each with its own weights. Lanes
  // below `lane` take the results of the first, the next `lane_step` those of each further one, and all others those of the last.
  std::int64_t parts = 1, lane = 0, lane_step = 0;
  // If not null: instead, the offset of each pixel from x; those of the next tile's pixels follow. Not with `list`, and only for
  // wide tiles of at most spread_pixels.
  const std::int64_t* places = nullptr;
  std::int64_t tiles = 1;  // number of such tiles, side by side
  // Weights that later tiles read, to prefetch ahead_lines cache lines of them per block of channels: see Ahead in
  // blocked_tasks.h.
  const float* ahead = nullptr;
  const float* ahead_end = nullptr;
  std::int64_t ahead_lines = 0;
};

struct BlockedKernels {
  int lanes;
  int block;
  int wide_pixels;
  int narrow_pixels;
  int spread_pixels;  // of tiles with places; as many as registers allow
  void (*tile)(const BlockedTile& t);
};

const BlockedKernels& blocked_kernels();

}  // namespace sdx::cpu
