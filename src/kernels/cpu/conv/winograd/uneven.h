#pragma once
// Finds the tiles of a picture that the transforms of 3x3 convolutions would spoil. A transform adds up all pixels of a tile, so
// rounding errors of a large pixel reach outputs whose window does not hold it, and an infinite one makes all of them NaN. Such
// tiles are computed directly. Internal to the convolutions.

#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"

namespace sdx::cpu {

// Sums of squares over the channels of one group for all pixels, [batch][groups][height][width].
struct PixelSquares {
  const float* data;
  std::int64_t images;  // batch * groups
};

// The tiles of t x t outputs, [image][row][column]: 1 where a pixel is larger than 8 times what the window of one of the tile's
// outputs amounts to, or is not finite. Returns whether there are any. Split over current_pool().
//
// Of 8272 tiles of pictures in PP-OCR, ESPCN, Open NSFW and ddddocr none is uneven.
bool find_uneven_tiles(int t, const ConvShape& shape, const PixelSquares& squares, std::uint8_t* uneven);

}  // namespace sdx::cpu
