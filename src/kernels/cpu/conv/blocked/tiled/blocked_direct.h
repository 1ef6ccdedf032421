#pragma once
// Tiles that transforms would spoil (uneven.h), computed directly; internal to this folder.

#include <cstdint>

#include "kernels/cpu/conv/blocked/tiled/blocked_tiles.h"

namespace sdx::cpu {

// Marks them, in tiles of t x t outputs, for TiledConv::uneven: as many bytes as the batch has tiles, times the groups. Returns
// whether there are any.
bool mark_uneven_tiles(const TiledConv& j, int t, const float* x, std::uint8_t* uneven);

bool is_uneven(const TiledConv& j, int t, std::int64_t group, const Place& at);

// Sets block `block` of the outputs of a tile, bias, residual and bounds included. `elements`: of each filter as the weights are
// packed; 9 if they are not transformed.
void output_directly(const TiledConv& j, int t, std::int64_t elements, const float* x, std::int64_t group, std::int64_t block,
                     const Place& at);

}  // namespace sdx::cpu
