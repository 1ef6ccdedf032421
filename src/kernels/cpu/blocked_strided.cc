// 3x3 convolutions with stride 2 by transformed tiles: see blocked_strided_kernels.h. Weights stay in their own size and are
// transformed in each run, which costs as much as the products of one tile of 4x4 outputs.

#include "base/thread_pool.h"
#include "kernels/cpu/blocked.h"
#include "kernels/cpu/blocked_internal.h"
#include "kernels/cpu/blocked_kernels.h"
#include "kernels/cpu/blocked_strided_kernels.h"
#include "kernels/cpu/blocked_tiles.h"
#include "kernels/cpu/elementwise_kernels.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kTile = 4;                  // outputs along each axis
constexpr std::int64_t kPoints = 5;                // of two taps
constexpr std::int64_t kInputFloats = 512 * 1024;  // transformed input of one block of tiles

struct Job {
  const ConvShape* s = nullptr;
  const BlockedKernels* k = nullptr;
  // Of one group.
  std::int64_t in_channels = 0, in_blocks = 0, out_blocks = 0, vectors = 0, pairs = 0;
  std::int64_t unit_pairs = 0, unit_blocks = 0, units = 0;  // pairs of output vectors that fill blocks
  std::int64_t tiles = 0;                                   // of the batch
  const float* weights = nullptr;
  const float* bias = nullptr;
  const float* residual = nullptr;
  UnarySpec act;
  Bounds bounds{UnarySpec{}};
  float* y = nullptr;

  std::int64_t width(std::int64_t pair) const { return 2 * pair + 1 < vectors ? 2 * k->lanes : k->lanes; }
  std::int64_t group_floats() const { return out_blocks * k->block * 9 * in_channels; }
};

Job make_job(const ConvShape& s) {
  Job j;
  j.s = &s;
  j.k = &blocked_kernels();
  const std::int64_t c = j.k->block, lanes = j.k->lanes;
  j.in_channels = s.in_channels / s.groups;
  j.in_blocks = up_div(j.in_channels, c);
  j.out_blocks = up_div(s.out_channels / s.groups, c);
  j.vectors = j.out_blocks * c / lanes;
  j.pairs = up_div(j.vectors, 2);
  j.unit_pairs = std::max<std::int64_t>(1, c / (2 * lanes));
  j.unit_blocks = std::max<std::int64_t>(1, 2 * lanes / c);
  j.units = up_div(j.pairs, j.unit_pairs);
  j.tiles = s.batch * up_div(s.out[1], kTile) * up_div(s.out[2], kTile);
  return j;
}

// The values that a block of tiles has in each part: where a tile's begin, and all of them last.
struct Values {
  std::int64_t first[4][kMostPlaces + 1];

  explicit Values(const TileBlock& tiles) {
    std::int64_t at[4] = {};
    for (std::int64_t i = 0; i <= tiles.count; ++i) {
      for (int part = 0; part < 4; ++part) first[part][i] = at[part];
      if (i == tiles.count) break;
      const Place& p = tiles.places[i];
      const std::int64_t more[4] = {1, p.columns, p.rows, p.rows * p.columns};
      for (int part = 0; part < 4; ++part) at[part] += more[part];
    }
  }
};

int part_of(std::int64_t e) { return e < 25 ? 0 : (e < 30 ? 1 : (e < 35 ? 2 : 3)); }
constexpr std::int64_t kFirstElement[4] = {0, 25, 30, 35};

// A block of tiles and the elements of its parts in a buffer: [part][element][block of channels][value][c].
struct Parts {
  TileBlock tiles;
  Values values;

  Parts(const ConvShape& s, std::int64_t first, std::int64_t count) : tiles(kTile, s, first, count), values(tiles) {}

  std::int64_t all(int part) const { return values.first[part][tiles.count]; }
  // Where a part begins; part 4: how much all take.
  std::int64_t begin(int part, std::int64_t floats) const {
    constexpr std::int64_t kElements[4] = {25, 5, 5, 1};
    std::int64_t sum = 0;
    for (int i = 0; i < part; ++i) sum += kElements[i] * all(i) * floats;
    return sum;
  }
  // The values that have element e.
  TileBlock::Range range(std::int64_t e) const {
    const int part = part_of(e);
    const std::int64_t i = e - kFirstElement[part];
    const std::int64_t row = part == 0 ? i / kPoints : (part == 1 ? i : 0),
                       column = part == 0 ? i % kPoints : (part == 2 ? i : 0);
    const auto has = [](std::int64_t point, std::int64_t cut) { return point < cut || point == kPoints - 1; };
    const TileBlock::Range r = tiles.with(has(row, tiles.cut_rows), has(column, tiles.cut_columns));
    return {values.first[part][r.begin], values.first[part][r.end]};
  }
  // Sets where tile i's elements lie in one of `blocks` blocks of c channels.
  void place(StridedTile& t, std::int64_t i, std::int64_t block, std::int64_t blocks, std::int64_t c, float* buffer) const {
    for (int part = 0; part < 4; ++part) {
      t.part[part] = buffer + begin(part, blocks * c) + (block * all(part) + values.first[part][i]) * c;
      if (part < 3) t.step[part] = blocks * all(part) * c;
    }
    t.rows = tiles.places[i].rows;
    t.columns = tiles.places[i].columns;
  }
};

void transform_input(const Job& j, const Parts& p, const float* x, std::int64_t group, float* v) {
  const ConvShape& s = *j.s;
  const std::int64_t c = j.k->block;
  StridedTile t;
  t.row_step = s.in[2] * c;
  for (std::int64_t b = 0; b < j.in_blocks; ++b) {
    for (std::int64_t i = 0; i < p.tiles.count; ++i) {
      const Place& at = p.tiles.places[i];
      const std::int64_t iy = 2 * at.y - s.pad[1], ix = 2 * at.x - s.pad[2];
      p.place(t, i, b, j.in_blocks, c, v);
      t.row0 = std::clamp<std::int64_t>(-iy, 0, 2 * at.rows + 1);
      t.row1 = std::clamp<std::int64_t>(s.in[1] - iy, 0, 2 * at.rows + 1);
      t.column0 = std::clamp<std::int64_t>(-ix, 0, 2 * at.columns + 1);
      t.column1 = std::clamp<std::int64_t>(s.in[2] - ix, 0, 2 * at.columns + 1);
      t.x = x + ((((at.image * s.groups + group) * j.in_blocks + b) * s.in[1] + iy) * s.in[2] + ix) * c;
      strided_kernels().input(t);
    }
  }
}

// Input channels [begin, end) of a pair of output vectors, begin at a block's edge. u: their transformed weights. `then`: what is
// read from memory next, in all `then_floats`.
struct Slab {
  std::int64_t begin, end;
  const float* u;
  const float* then;
  std::int64_t then_floats;
};

// One pair of output vectors of a unit whose first block is `block`. Products of channels after the first ones are added to m.
void multiply(const Job& j, const Parts& p, std::int64_t pair, std::int64_t block, const Slab& slab, const float* v, float* m) {
  static constexpr float kNone[32] = {};
  const std::int64_t c = j.k->block, lanes = j.k->lanes, channels = slab.end - slab.begin;
  BlockedTile t;
  t.pixel_step = c;
  t.blocks = channels / c;
  t.run = c;
  t.tail_taps = 1;
  t.tail_run = channels % c;
  t.wide = j.width(pair) == 2 * lanes;
  t.bias = kNone;
  t.lo = -std::numeric_limits<float>::infinity();
  t.hi = std::numeric_limits<float>::infinity();
  const std::int64_t each = up_div(up_div(slab.then_floats, kStridedElements), 16) * 16;
  for (std::int64_t e = 0; e < kStridedElements; ++e) {
    const int part = part_of(e);
    const TileBlock::Range range = p.range(e);
    const std::int64_t all = p.all(part), i = e - kFirstElement[part];
    const Cuts cuts(range.end - range.begin, t.wide ? j.k->wide_pixels : j.k->narrow_pixels);
    const float* const from = v + p.begin(part, j.in_blocks * c) + (i * j.in_blocks + slab.begin / c) * all * c;
    float* const to = m + p.begin(part, j.unit_blocks * c) + i * j.unit_blocks * all * c;
    t.w = slab.u + e * kWinogradStep;
    t.block_step = all * c;
    const Ahead ahead(slab.then + (e - 1) * each, each, up_div(channels, c), cuts.parts);
    equal_tiles(cuts, [&](std::int64_t first, std::int64_t count) {
      const std::int64_t at = (range.begin + cuts.begin(first)) * c;
      ahead.set(t, first);
      t.x = from + at;
      t.pixels = cuts.size(first);
      t.tiles = count;
      for (std::int64_t n = 0; n < (t.wide ? 2 : 1); ++n) {
        const std::int64_t channel = (2 * pair + n) * lanes;
        t.y[n] = to + (channel / c - block) * all * c + at + channel % c;
        t.residual[n] = slab.begin > 0 ? t.y[n] : nullptr;
      }
      j.k->tile(t);
    });
  }
}

// u has room for transformed weights.
void multiply_all(const Job& j, const Parts& p, std::int64_t group, std::int64_t pair, std::int64_t block, const float* v,
                  float* u, float* m) {
  const std::int64_t all = j.in_channels, width = j.width(pair), c = j.k->block;
  const std::int64_t most = kWinogradFilters / (2 * j.k->lanes) / c * c;
  const std::int64_t step = up_div(up_div(all, up_div(all, most)), c) * c;
  const float* const w = j.weights + group * j.group_floats() + pair * 2 * j.k->lanes * all * 9;
  for (std::int64_t begin = 0; begin < all; begin += step) {
    const std::int64_t end = std::min(all, begin + step);
    strided_kernels().weights(w + begin * 9 * width, end - begin, width, u);
    const bool last = end == all && pair + 1 == j.pairs;
    const std::int64_t next = last ? 0 : std::min(step, end < all ? all - end : all) * 9 * width;
    multiply(j, p, pair, block, {begin, end, u, w + end * 9 * width, next}, v, m);
  }
}

void transform_output(const Job& j, const Parts& p, std::int64_t group, std::int64_t block, std::int64_t of_unit, float* m) {
  const ConvShape& s = *j.s;
  const std::int64_t c = j.k->block, plane = group * j.out_blocks + block;
  StridedTile t;
  t.bias = j.bias + plane * c;
  t.lo = j.bounds.lo;
  t.hi = j.bounds.hi;
  t.y_step = s.out[2] * c;
  for (std::int64_t i = 0; i < p.tiles.count; ++i) {
    const Place& at = p.tiles.places[i];
    const std::int64_t to = (((at.image * s.groups * j.out_blocks + plane) * s.out[1] + at.y) * s.out[2] + at.x) * c;
    p.place(t, i, of_unit, j.unit_blocks, c, m);
    t.y = j.y + to;
    t.residual = j.residual != nullptr ? j.residual + to : nullptr;
    strided_kernels().output(t);
    if (j.bounds.after) elementwise_kernels().unary_rows(j.act, t.y, t.y_step, t.rows, t.columns * c);
  }
}

// Floats of all parts of a full tile in a block of channels: 25 + 5 * 4 + 5 * 4 + 16 values.
constexpr std::int64_t kTileValues = 81;

std::int64_t most_tiles(const Job& j) {
  return std::clamp<std::int64_t>(kInputFloats / (kTileValues * j.in_blocks * j.k->block), j.k->wide_pixels, kMostPlaces);
}

}  // namespace

double blocked_strided_cost(const ConvShape& s) {
  const Job j = make_job(s);
  // Register tiles of less than four pixels take as long as those of four: their chains do not hide an FMA's latency.
  const auto whole = [&](std::int64_t n) { return static_cast<double>(std::max(n, 4 * up_div(n, j.k->wide_pixels))); };
  // Along an axis: the points that all tiles have and those of full ones, and how many tiles these are.
  struct Points {
    std::int64_t points, tiles;
  };
  const auto along = [](std::int64_t out, bool of_all) -> Points {
    const std::int64_t cut = (out - 1) % kTile + 1;
    return of_all ? Points{cut + 1, up_div(out, kTile)} : Points{kTile - cut, out / kTile};
  };
  double sum = whole(s.batch * s.out[1] * s.out[2]);
  for (const bool all_rows : {true, false}) {
    const Points rows = along(s.out[1], all_rows), columns = along(s.out[2], all_rows);
    sum += static_cast<double>(rows.points) * whole(s.batch * rows.tiles * s.out[2]);
    sum += static_cast<double>(columns.points) * whole(s.batch * columns.tiles * s.out[1]);
    for (const bool all_columns : {true, false}) {
      const Points other = along(s.out[2], all_columns);
      sum += static_cast<double>(rows.points * other.points) * whole(s.batch * rows.tiles * other.tiles);
    }
  }
  // A filter's transform takes as long as 80 products; those of the images as much as some more channels on the other side.
  sum += 80.0 * static_cast<double>(up_div(j.tiles, most_tiles(j)));
  return sum * (1.0 + 14.0 / static_cast<double>(s.out_channels / s.groups) + 14.0 / static_cast<double>(j.in_channels));
}

bool blocked_strided_supports(const ConvShape& s) {
  const std::int64_t block = blocked_kernels().block;
  for (int i = 1; i < 3; ++i) {
    if (s.kernel[i] != 3 || s.stride[i] != 2 || s.dilation[i] != 1) return false;
  }
  return s.groups == 1 || (s.in_channels / s.groups % block == 0 && s.out_channels / s.groups % block == 0);
}

std::size_t blocked_strided_floats(const ConvShape& s) {
  const Job j = make_job(s);
  return static_cast<std::size_t>(s.groups * (j.group_floats() + j.out_blocks * j.k->block));
}

void blocked_strided_pack(const ConvShape& s, const void* weights, const float* bias, float* packed) {
  const Job j = make_job(s);
  pack_bias(bias, s.out_channels, s.groups * j.out_blocks * j.k->block, packed + s.groups * j.group_floats());
  pack_winograd_taps(s, weights, packed);
}

void conv_blocked_strided(const ConvShape& s, const float* x, const float* packed, const float* residual, const UnarySpec& act,
                          float* y) {
  Job j = make_job(s);
  const std::int64_t c = j.k->block;
  j.weights = packed;
  j.bias = packed + s.groups * j.group_floats();
  j.residual = residual;
  j.act = act;
  j.bounds = Bounds(act);
  j.y = y;
  const std::int64_t threads = current_pool().threads();
  std::int64_t most = most_tiles(j);
  // As many blocks for each thread, where there are several.
  const std::int64_t even = up_div(up_div(j.tiles, most), threads) * threads;
  if (j.tiles > most && s.groups % threads != 0) most = std::max<std::int64_t>(j.k->wide_pixels, up_div(j.tiles, even));
  const Cuts blocks(j.tiles, most);
  // Fewer blocks of tiles than threads: the outputs are cut too, and each part transforms the input for itself.
  const std::int64_t parts =
      std::clamp<std::int64_t>(threads / (s.groups * blocks.parts), 1, std::max<std::int64_t>(1, j.units / 4));
  const Cuts shares(j.units, up_div(j.units, parts));
  parallel_for(s.groups * blocks.parts * shares.parts, 1, [&](std::int64_t begin, std::int64_t end) {
    float* v = thread_scratch(2, static_cast<std::size_t>(kTileValues * j.in_blocks * most * c));
    float* m = thread_scratch(3, static_cast<std::size_t>(kTileValues * j.unit_blocks * most * c));
    float* u = thread_scratch(1, static_cast<std::size_t>(kStridedElements * kWinogradStep));
    std::int64_t transformed = -1;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t place = i / shares.parts, share = i % shares.parts;
      const std::int64_t group = place / blocks.parts, b = place % blocks.parts;
      const Parts p(s, blocks.begin(b), blocks.size(b));
      if (transformed != place) transform_input(j, p, x, group, v);
      transformed = place;
      for (std::int64_t n = shares.begin(share); n < shares.begin(share + 1); ++n) {
        const std::int64_t block = n * j.unit_blocks;
        for (std::int64_t pair = n * j.unit_pairs; pair < std::min(j.pairs, (n + 1) * j.unit_pairs); ++pair) {
          multiply_all(j, p, group, pair, block, v, u, m);
        }
        for (std::int64_t o = 0; o < j.unit_blocks && block + o < j.out_blocks; ++o) {
          transform_output(j, p, group, block + o, o, m);
        }
      }
    }
  });
}

}  // namespace sdx::cpu
