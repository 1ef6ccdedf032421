#pragma once
// The per-target register tiles of convolutions over blocked channels; internal to this folder.

#include <cstdint>

namespace sdx::cpu {

// Register tiles: `pixels` neighbouring output pixels times one or two vectors of output channels. The input of pixel p is at
// x + p * pixel_step; from there the taps are [blocks][rows][taps][run] with the run contiguous, and [rows][tail_taps][tail_run]
// of the last, partly filled block. The weights lie in that order, a vector or two for each element.
struct BlockedTile {
  const float* x = nullptr;
  std::int64_t pixel_step = 0, block_step = 0, row_step = 0, tap_step = 0;
  std::int64_t blocks = 0, rows = 1, taps = 1, run = 0;
  std::int64_t tail_taps = 0, tail_run = 0;
  const float* w = nullptr;
  const float* bias = nullptr;    // of these vectors of channels
  float* y[2] = {};               // of each vector's first pixel; the next one is a block further
  const float* residual[2] = {};  // null: none
  float lo = 0, hi = 0;           // bounds of the result
  std::int64_t pixels = 0;        // 1 .. wide_pixels or narrow_pixels
  bool wide = true;               // two vectors
  // Not null: `run` single elements of one tap instead, this far behind x each.
  const std::int64_t* list = nullptr;
  // Of a tile with `list` that is not wide: so many such lists follow each other, with weights of their own. Results of the first
  // are in the lanes below `lane`, those of each further one in the next `lane_step`, of the last in all that follow.
  std::int64_t parts = 1, lane = 0, lane_step = 0;
  // Not null: pixel p lies so far behind x instead, where the next tile's pixels follow. Not with `list`, and for wide tiles of
  // at most spread_pixels alone.
  const std::int64_t* places = nullptr;
  std::int64_t tiles = 1;  // such tiles, side by side
  // Weights that later tiles read, so many cache lines for each block of channels: see Ahead in blocked_tasks.h.
  const float* ahead = nullptr;
  const float* ahead_end = nullptr;
  std::int64_t ahead_lines = 0;
};

struct BlockedKernels {
  int lanes;
  int block;
  int wide_pixels;
  int narrow_pixels;
  int spread_pixels;  // of tiles with places; as many as there are registers for
  void (*tile)(const BlockedTile& t);
};

const BlockedKernels& blocked_kernels();

}  // namespace sdx::cpu
