#pragma once
// Code shared by 3x3 convolutions that multiply transformed tiles, Winograd's and those with stride 2; internal to this folder.

#include <algorithm>
#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/blocked/blocked_joined.h"
#include "kernels/cpu/conv/blocked/blocked_simd.h"
#include "kernels/cpu/conv/blocked/blocked_tasks.h"
#include "kernels/cpu/conv/blocked/tiled/blocked_image_tile.h"
#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/simd/cuts.h"

namespace sdx::cpu {

// Position of a tile.
struct Place {
  std::int64_t image;
  std::int64_t y, x;           // its first output
  std::int64_t rows, columns;  // of outputs inside the plane
};

constexpr std::int64_t kMostPlaces = 64;

// Tiles of t x t outputs, ordered so that all tiles that have a given point are adjacent. A tile at the end of an axis lacks some
// points along it if it has fewer outputs there: the same number for all such tiles.
struct TileBlock {
  std::int64_t count;
  Place places[kMostPlaces];
  std::int64_t full_rows = 0;                           // places [0, full_rows) have all rows,
  std::int64_t full_columns = 0, full_columns_end = 0;  // these have all columns
  std::int64_t cut_rows, cut_columns;                   // of outputs in the other tiles

  // Tiles [first, first + tiles) of the batch, at most kMostPlaces.
  TileBlock(std::int64_t t, const ConvShape& s, std::int64_t first, std::int64_t tiles);

  struct Range {
    std::int64_t begin, end;
  };
  // The tiles that have a given point along rows and one along columns: `any_...` if all tiles have it, else only full ones.
  Range with(bool any_rows, bool any_columns) const {
    return {any_columns ? 0 : full_columns, any_rows ? (any_columns ? count : full_columns_end) : full_rows};
  }
};

// Points along an axis in tiles of t outputs, where a tile of V outputs has V + `more` points. of_all: the points that all tiles
// have, else those that only full ones have; with the number of tiles that have them.
struct AxisPoints {
  std::int64_t points, tiles;
};
AxisPoints axis_points(std::int64_t outputs, std::int64_t t, std::int64_t more, bool of_all);

struct TiledConv {
  const ConvShape* s = nullptr;
  const BlockedKernels* k = nullptr;
  // Of each group.
  std::int64_t in_channels = 0, out_channels = 0, in_blocks = 0, out_blocks = 0, vectors = 0, pairs = 0;
  std::int64_t unit_pairs = 0, unit_blocks = 0, units = 0;  // a unit: pairs of output vectors that fill whole blocks
  // Of a run.
  LeftOut* left_out = nullptr;  // null: one group fills its blocks
  const float* weights = nullptr;
  const float* bias = nullptr;
  const float* residual = nullptr;
  UnarySpec act;
  Bounds bounds{UnarySpec{}};
  float* y = nullptr;
  const std::uint8_t* uneven = nullptr;  // [image][group][tile], see uneven.h; null: none

  explicit TiledConv(const ConvShape& shape);
  void set_run(const float* packed, const float* packed_bias, const float* to_add, const UnarySpec& activation, float* result);

  std::int64_t tiles(std::int64_t t) const { return s->batch * up_div(s->out[1], t) * up_div(s->out[2], t); }
  std::int64_t width(std::int64_t pair) const { return 2 * pair + 1 < vectors ? 2 * k->lanes : k->lanes; }
  // Packed weights of a group, and where those for a pair of output vectors begin; `each` floats for a filter of one channel.
  std::int64_t group_floats(std::int64_t each) const { return out_blocks * k->block * each * in_channels; }
  std::int64_t weights_at(std::int64_t group, std::int64_t pair, std::int64_t each) const {
    return group * group_floats(each) + pair * 2 * k->lanes * in_channels * each;
  }
  // The transforms cost as much as 14 more channels on the other side.
  double with_transforms(double products) const {
    return products * (1.0 + 14.0 / static_cast<double>(out_channels) + 14.0 / static_cast<double>(in_channels));
  }
};

// Sets where a tile's input is, in block `b` of a group's channels; or where its results, bias and residual are, in block `b` of
// its output channels.
void place_input(const TiledConv& j, const float* x, std::int64_t group, std::int64_t b, const Place& at, ImageTile& t);
void place_output(const TiledConv& j, std::int64_t group, std::int64_t b, const Place& at, ImageTile& t);
// Applies an activation that bounds do not cover to a tile's results.
void finish_tile(const TiledConv& j, const ImageTile& t);

// Transformed weights of one pair of output vectors and input channels [begin, end), `begin` at a block's edge.
struct Slab {
  std::int64_t begin, end;
  const float* w;  // [element][channel][vector or two]
  std::int64_t step;
  const float* then;  // what is read from memory next, then_step floats of it during each element
  std::int64_t then_step;
};

// One transformed element of a block of tiles: the values that exist, out of room for `all`.
struct TileElement {
  TileBlock::Range values;
  std::int64_t all;
  const float* v;  // [block of channels][value][c]
  float* m;        // [block of the unit][value][c]
};

// Products of one pair of output vectors of the unit whose first block is `block`; slabs after the first add to the sums so far.
void multiply_element(const TiledConv& j, std::int64_t pair, std::int64_t block, const Slab& slab, std::int64_t e,
                      const TileElement& at);

// For weights stored as [pair][channel][tap][vector or two]: transform(weights, channels, width) transforms those of as many
// channels as fit into u, multiply(slab) uses them.
template <class Transform, class Multiply>
void multiply_lean(const TiledConv& j, std::int64_t group, std::int64_t pair, std::int64_t elements, const float* u,
                   const Transform& transform, const Multiply& multiply) {
  const std::int64_t all = j.in_channels, width = j.width(pair), c = j.k->block;
  const std::int64_t most = kWinogradFilters / (2 * j.k->lanes) / c * c;
  const std::int64_t step = up_div(up_div(all, up_div(all, most)), c) * c;
  const float* const w = j.weights + j.weights_at(group, pair, 9);
  for (std::int64_t begin = 0; begin < all; begin += step) {
    const std::int64_t end = std::min(all, begin + step);
    transform(w + begin * 9 * width, end - begin, width);
    const bool last = end == all && pair + 1 == j.pairs;
    const std::int64_t next = last ? 0 : std::min(step, end < all ? all - end : all) * 9 * width;
    const std::int64_t each = up_div(up_div(next, elements), 16) * 16;
    multiply(Slab{begin, end, u, kWinogradStep, w + end * 9 * width, each});
  }
}

// Records a block of tiles as left out.
void leave_out(const TiledConv& j, std::int64_t group, const TileBlock& tiles);

// Runs a whole convolution: `tiles` in blocks of at most `most`, split over the current pool. Work(j, x, group, first, count,
// most) is one thread's work on `count` tiles: transform() of the input, multiply(pair, block) for a pair of output vectors of
// the unit that begins with `block`, output(block, i) of the unit's block i to y; tame() says whether 0 times any transformed
// value is 0. Its scratch is sized for `most`, whatever the count, so that one Work finds what the previous one transformed.
template <class Work, class Conv>
void run_tiles(const Conv& j, const float* x, std::int64_t tiles, std::int64_t most) {
  const std::int64_t threads = current_pool().threads(), groups = j.s->groups;
  // If there are several blocks, all threads get the same number: with one more block, the other threads would wait.
  const std::int64_t even = up_div(up_div(tiles, most), threads) * threads;
  if (tiles > most && groups % threads != 0) most = std::max<std::int64_t>(j.k->wide_pixels, up_div(tiles, even));
  const Cuts blocks(tiles, most);
  // With fewer blocks of tiles than threads, the outputs are cut too, and each part transforms the input again, which takes as
  // long as 14 channels.
  constexpr std::int64_t kFewestChannels = 32;
  const std::int64_t most_parts = std::max<std::int64_t>(1, j.out_channels / kFewestChannels);
  const std::int64_t parts = std::clamp<std::int64_t>(threads / (groups * blocks.parts), 1, std::min(j.units, most_parts));
  const Cuts shares(j.units, up_div(j.units, parts));
  parallel_for(groups * blocks.parts * shares.parts, 1, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t transformed = -1;
    bool skips = false;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t place = i / shares.parts, share = i % shares.parts, b = place % blocks.parts;
      const Work of_block(j, x, place / blocks.parts, blocks.begin(b), blocks.size(b), most);
      if (transformed != place) {
        of_block.transform();
        skips = j.left_out != nullptr && !of_block.tame();
        if (skips) leave_out(j, of_block.group, of_block.tiles);
      }
      transformed = place;
      if (skips) continue;
      for (std::int64_t unit = shares.begin(share); unit < shares.begin(share + 1); ++unit) {
        const std::int64_t block = unit * j.unit_blocks;
        for (std::int64_t pair = unit * j.unit_pairs; pair < std::min(j.pairs, (unit + 1) * j.unit_pairs); ++pair) {
          of_block.multiply(pair, block);
        }
        for (std::int64_t o = 0; o < j.unit_blocks && block + o < j.out_blocks; ++o) of_block.output(block + o, o);
      }
    }
  });
}

}  // namespace sdx::cpu
