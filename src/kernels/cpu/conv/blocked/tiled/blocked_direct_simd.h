#pragma once
// The per-target inner kernels of blocked_direct.cc; internal to this folder.

#include <cstdint>

#include "kernels/cpu/conv/blocked/tiled/blocked_image_tile.h"

namespace sdx::cpu {

// A vector of filters as they are packed: tap k, or if `t` is not 0, element k of the transform for t x t outputs, of the filter
// of channel c is at w + k * step + c * channel_step.
struct PackedFilters {
  const float* w = nullptr;
  std::int64_t step = 0, channel_step = 0;
  int t = 0;
};

struct BlockedDirectKernels {
  // Adds the products of the first `channels` of the tile's block of channels to a vector of sums for each of t x t outputs,
  // `stride` apart; `begin`: there are no sums yet.
  void (*sums)(int t, int stride, const ImageTile& tile, const PackedFilters& filters, std::int64_t channels, bool begin,
               float* sums);
  // Bias, residual and bounds for the sums of the vector that begins at `offset` in its block, to the tile's y.
  void (*output)(int t, const ImageTile& tile, const float* sums, std::int64_t offset);
  // squares[p] = sum of squares over the channels of pixel p, of blocks that lie block_step apart.
  void (*squares)(const float* x, std::int64_t block_step, std::int64_t channels, std::int64_t pixels, float* squares);
};

const BlockedDirectKernels& blocked_direct_kernels();

}  // namespace sdx::cpu
