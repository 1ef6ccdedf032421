#pragma once
// What 3x3 convolutions by products of transformed tiles have in common, Winograd's and those with stride 2; internal to this
// folder.

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
  TileBlock(std::int64_t t, const ConvShape& s, std::int64_t first, std::int64_t tiles);

  struct Range {
    std::int64_t begin, end;
  };
  // The tiles that have a point along rows and one along columns: each is one that all tiles have, or full ones alone.
  Range with(bool any_rows, bool any_columns) const {
    return {any_columns ? 0 : full_columns, any_rows ? (any_columns ? count : full_columns_end) : full_rows};
  }
};

// Along an axis in tiles of t outputs, where one of V has V + `more` points: those that all tiles have, or those that only full
// ones have, and how many tiles these are.
struct AxisPoints {
  std::int64_t points, tiles;
};
AxisPoints axis_points(std::int64_t outputs, std::int64_t t, std::int64_t more, bool of_all);

struct TiledConv {
  const ConvShape* s = nullptr;
  const BlockedKernels* k = nullptr;
  // Of one group.
  std::int64_t in_channels = 0, out_channels = 0, in_blocks = 0, out_blocks = 0, vectors = 0, pairs = 0;
  std::int64_t unit_pairs = 0, unit_blocks = 0, units = 0;  // pairs of output vectors that fill blocks
  // Of a run.
  LeftOut* left_out = nullptr;  // null: one group fills its blocks
  const float* weights = nullptr;
  const float* bias = nullptr;
  const float* residual = nullptr;
  UnarySpec act;
  Bounds bounds{UnarySpec{}};
  float* y = nullptr;

  explicit TiledConv(const ConvShape& shape);
  void set_run(const float* packed, const float* packed_bias, const float* to_add, const UnarySpec& activation, float* result);

  std::int64_t tiles(std::int64_t t) const { return s->batch * up_div(s->out[1], t) * up_div(s->out[2], t); }
  std::int64_t width(std::int64_t pair) const { return 2 * pair + 1 < vectors ? 2 * k->lanes : k->lanes; }
  // Packed weights of a group, and where those of a pair of output vectors begin; `each` floats for a filter of one channel.
  std::int64_t group_floats(std::int64_t each) const { return out_blocks * k->block * each * in_channels; }
  std::int64_t weights_at(std::int64_t group, std::int64_t pair, std::int64_t each) const {
    return group * group_floats(each) + pair * 2 * k->lanes * in_channels * each;
  }
  // The transforms cost as much as some more channels on the other side.
  double with_transforms(double products) const {
    return products * (1.0 + 14.0 / static_cast<double>(out_channels) + 14.0 / static_cast<double>(in_channels));
  }
};

// Where a tile's input lies in block `b` of a group's channels; its results in block `b` of a group's output channels, with the
// bias and what is added.
void place_input(const TiledConv& j, const float* x, std::int64_t group, std::int64_t b, const Place& at, ImageTile& t);
void place_output(const TiledConv& j, std::int64_t group, std::int64_t b, const Place& at, ImageTile& t);
// What the bounds of a tile's results do not do of the activation.
void finish_tile(const TiledConv& j, const ImageTile& t);

// Transformed weights of one pair of output vectors and input channels [begin, end), begin at a block's edge.
struct Slab {
  std::int64_t begin, end;
  const float* w;  // [element][channel][vector or two]
  std::int64_t step;
  const float* then;  // what is read from memory next, then_step of it during each element
  std::int64_t then_step;
};

// One transformed element of a block of tiles: the values that exist of it, of `all` that there is room for.
struct TileElement {
  TileBlock::Range values;
  std::int64_t all;
  const float* v;  // [block of channels][value][c]
  float* m;        // [block of the unit][value][c]
};

// Products of one pair of output vectors of a unit whose first block is `block`; those of channels after the first ones are added
// to what is there.
void multiply_element(const TiledConv& j, std::int64_t pair, std::int64_t block, const Slab& slab, std::int64_t e,
                      const TileElement& at);

// With weights as [pair][channel][tap][vector or two]: transform(weights, channels, width) makes transformed ones at u of as many
// channels as fit, multiply(slab) uses them.
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

// Leaves a block of tiles out.
void leave_out(const TiledConv& j, std::int64_t group, const TileBlock& tiles);

// All of a convolution, `tiles` in blocks of at most `most`, shared out to the current pool. Work(j, x, group, first, count,
// most) is what a thread does with `count` tiles, transform() the input, multiply(pair, block) for a pair of output vectors of
// the unit that begins with that block, output(block, i) of the unit's block i to y; tame() says whether products of what was
// transformed with 0 are 0. Its scratch is sized for `most`, whatever the count: what one Work transformed the next one finds.
template <class Work, class Job>
void run_tiles(const Job& j, const float* x, std::int64_t tiles, std::int64_t most) {
  const std::int64_t threads = current_pool().threads(), groups = j.s->groups;
  // As many blocks for each thread, where there are several: one more would keep the others waiting.
  const std::int64_t even = up_div(up_div(tiles, most), threads) * threads;
  if (tiles > most && groups % threads != 0) most = std::max<std::int64_t>(j.k->wide_pixels, up_div(tiles, even));
  const Cuts blocks(tiles, most);
  // Fewer blocks of tiles than threads: the outputs are cut too, and each part transforms the input for itself.
  const std::int64_t parts =
      std::clamp<std::int64_t>(threads / (groups * blocks.parts), 1, std::max<std::int64_t>(1, j.units / 4));
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
