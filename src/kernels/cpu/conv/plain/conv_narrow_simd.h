#pragma once
// Per-target inner loops of conv_narrow(); internal to this folder.

#include <cstdint>

namespace sdx::cpu {

inline constexpr int kNarrowTiles = 4, kNarrowPositions = 8;

// sums[tile][position][lane] of `tiles` tiles of output channels at `positions` positions, over one block of K.
struct NarrowBlock {
  std::int64_t tiles = 0;              // 1 .. NarrowKernels::tiles_at(positions)
  std::int64_t positions = 0;          // 1 .. kNarrowPositions
  const float* weights[kNarrowTiles];  // [k][height]
  std::int64_t height[kNarrowTiles];   // 1 .. lanes
  std::int64_t k = 0;
  std::int64_t whole = 0;    // steps of K at which every tile's weights can be read in whole vectors
  const float* x = nullptr;  // element (k, position) at x[offset[k] + position_offset[position]]
  const std::int64_t* offset = nullptr;
  const std::int64_t* position_offset = nullptr;
  bool accumulate = false;  // add to what `sums` holds
  float* sums = nullptr;    // 64-byte aligned
};

struct NarrowKernels {
  int lanes;
  std::int64_t (*tiles_at)(std::int64_t positions);
  void (*sum)(const NarrowBlock& block);
};

const NarrowKernels& narrow_kernels();

}  // namespace sdx::cpu
