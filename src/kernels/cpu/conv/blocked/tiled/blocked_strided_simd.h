#pragma once
// The per-target inner kernels of 3x3 convolutions with stride 2 as products of transformed tiles; internal to this folder.
//
// Outputs y[o] = g0 x[2o] + g1 x[2o + 1] + g2 x[2o + 2] along an axis: two taps on the even inputs, which F(4, 2) turns into five
// products for four outputs, and one on the odd ones. Along both axes that makes four parts, whose elements are numbered
//   0 .. 24   even rows and columns, transformed along both: [row point][column point], one value for each tile
//   25 .. 29  even rows transformed, odd columns: [row point], one value for each column of outputs
//   30 .. 34  odd rows, even columns transformed: [column point], one value for each row of outputs
//   35        odd rows and columns: a value for each output
// 81 products instead of the plain sum's 144. The points are 1, -1, 1/2, -1/2 and infinity: 1.2 times the error of plain sums of
// 128 channels.

#include <cstdint>

#include "kernels/cpu/conv/blocked/tiled/blocked_image_tile.h"

namespace sdx::cpu {

constexpr std::int64_t kStridedElements = 36;

// With (2 rows + 1) x (2 columns + 1) inputs. A tile of V < 4 outputs along an axis has only the points 0 .. V - 1 and 4.
struct StridedTile : ImageTile {
  // The first value of each part, and how far apart the part's elements are. The values of an element are contiguous.
  float* part[4] = {};
  std::int64_t step[3] = {};
};

struct StridedKernels {
  void (*input)(const StridedTile& t);
  void (*output)(const StridedTile& t);
  // Transforms filters whose nine taps are in g as [channel][tap][width], width being one or two vectors; element e goes to
  // out[e * kWinogradStep + channel * width]. channels * width <= kWinogradFilters.
  void (*weights)(const float* g, std::int64_t channels, std::int64_t width, float* out);
};

const StridedKernels& strided_kernels();

}  // namespace sdx::cpu
