#include <cstring>

#include "base/thread_pool.h"
#include "kernels/cpu/blocked.h"
#include "kernels/cpu/blocked_internal.h"
#include "kernels/cpu/blocked_kernels.h"
#include "kernels/cpu/blocked_tiles.h"
#include "kernels/cpu/elementwise_kernels.h"
#include "kernels/cpu/gemm_kernels.h"
#include "kernels/cpu/winograd_kernels.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kMostTiles = 48;             // of one block of tiles
constexpr std::int64_t kInputFloats = 384 * 1024;   // transformed input of one block
constexpr std::int64_t kLightWeights = 512 * 1024;  // floats
// With weights that are transformed in each run: more tiles share a transform.
constexpr std::int64_t kLeanTiles = kMostPlaces;
constexpr std::int64_t kLeanInputFloats = 1024 * 1024;

struct Job {
  int t = 0;
  bool lean = false;  // weights lie as they are and are transformed in each run
  const ConvShape* s = nullptr;
  const BlockedKernels* k = nullptr;
  // Of one group.
  std::int64_t in_channels = 0, out_channels = 0;
  std::int64_t elements = 0, in_blocks = 0, out_blocks = 0, vectors = 0, pairs = 0, tiles_x = 0, tiles_y = 0;
  std::int64_t unit_pairs = 0, unit_blocks = 0, units = 0;  // pairs of output vectors that fill blocks
  const float* weights = nullptr;
  const float* bias = nullptr;
  const float* residual = nullptr;
  UnarySpec act;
  Bounds bounds{UnarySpec{}};
  float* y = nullptr;

  std::int64_t width(std::int64_t pair) const { return 2 * pair + 1 < vectors ? 2 * k->lanes : k->lanes; }
};

// Of a filter of one channel.
std::int64_t filter_floats(const Job& j) { return j.lean ? 9 : j.elements; }

// Weights of a group, and where those of a pair of output vectors begin.
std::int64_t group_floats(const Job& j) { return j.out_blocks * j.k->block * filter_floats(j) * j.in_channels; }
std::int64_t weights_at(const Job& j, std::int64_t group, std::int64_t pair) {
  return group * group_floats(j) + pair * 2 * j.k->lanes * j.in_channels * filter_floats(j);
}

// v: [element][block of channels][tile][c]
void transform_input(const Job& j, const float* x, std::int64_t group, const TileBlock& tiles, float* v) {
  const ConvShape& s = *j.s;
  const std::int64_t c = j.k->block, count = tiles.count;
  WinogradTile w;
  w.row_step = s.in[2] * c;
  w.e_step = j.in_blocks * count * c;
  for (std::int64_t b = 0; b < j.in_blocks; ++b) {
    for (std::int64_t i = 0; i < count; ++i) {
      const Place& at = tiles.places[i];
      const std::int64_t iy = at.y - s.pad[1], ix = at.x - s.pad[2];
      w.rows = at.rows;
      w.columns = at.columns;
      w.row0 = std::clamp<std::int64_t>(-iy, 0, at.rows + 2);
      w.row1 = std::clamp<std::int64_t>(s.in[1] - iy, 0, at.rows + 2);
      w.column0 = std::clamp<std::int64_t>(-ix, 0, at.columns + 2);
      w.column1 = std::clamp<std::int64_t>(s.in[2] - ix, 0, at.columns + 2);
      w.x = x + ((((at.image * s.groups + group) * j.in_blocks + b) * s.in[1] + iy) * s.in[2] + ix) * c;
      w.v = v + (b * count + i) * c;
      j.k->winograd_input(j.t, w);
    }
  }
}

// Transformed weights of one pair of output vectors and input channels [begin, end), begin at a block's edge.
struct Slab {
  std::int64_t begin, end;
  const float* w;  // [element][channel][vector or two]
  std::int64_t e_step;
  const float* then;  // what is read from memory next, then_step of it during each element
  std::int64_t then_step;
};

// One pair of output vectors of a unit whose first block is `block`. m: [element][block of the unit][tile][c]; products of
// channels after the first ones are added to what is there.
void multiply(const Job& j, std::int64_t pair, std::int64_t block, const TileBlock& of, const Slab& slab, const float* v,
              float* m) {
  static constexpr float kNone[32] = {};
  const std::int64_t c = j.k->block, lanes = j.k->lanes, count = of.count;
  BlockedTile t;
  t.pixel_step = c;
  t.block_step = count * c;
  t.blocks = (slab.end - slab.begin) / c;
  t.run = c;
  t.tail_taps = 1;
  t.tail_run = (slab.end - slab.begin) % c;
  t.wide = j.width(pair) == 2 * lanes;
  t.bias = kNone;
  t.lo = -std::numeric_limits<float>::infinity();
  t.hi = std::numeric_limits<float>::infinity();
  for (std::int64_t e = 0; e < j.elements; ++e) {
    const std::int64_t last = j.t + 1, row = e / (j.t + 2), column = e % (j.t + 2);
    const TileBlock::Range range = of.with(row <= of.cut_rows || row == last, column <= of.cut_columns || column == last);
    const Cuts cuts(range.end - range.begin, t.wide ? j.k->wide_pixels : j.k->narrow_pixels);
    t.w = slab.w + e * slab.e_step;
    const Ahead ahead(slab.then + (e - 1) * slab.then_step, slab.then_step, up_div(slab.end - slab.begin, c), cuts.parts);
    equal_tiles(cuts, [&](std::int64_t i, std::int64_t tiles) {
      const std::int64_t p = (range.begin + cuts.begin(i)) * c;
      ahead.set(t, i);
      t.x = v + (e * j.in_blocks * count + slab.begin / c * count) * c + p;
      t.pixels = cuts.size(i);
      t.tiles = tiles;
      for (std::int64_t u = 0; u < (t.wide ? 2 : 1); ++u) {
        const std::int64_t channel = (2 * pair + u) * lanes;
        t.y[u] = m + (e * j.unit_blocks + channel / c - block) * count * c + p + channel % c;
        t.residual[u] = slab.begin > 0 ? t.y[u] : nullptr;
      }
      j.k->tile(t);
    });
  }
}

// With weights that were transformed when they were packed.
void multiply_packed(const Job& j, std::int64_t group, std::int64_t pair, std::int64_t block, const TileBlock& tiles,
                     const float* v, float* m) {
  const std::int64_t floats = j.width(pair) * j.in_channels;
  const float* const w = j.weights + weights_at(j, group, pair);
  multiply(j, pair, block, tiles, {0, j.in_channels, w, floats, w + floats, floats}, v, m);
}

// Input channels whose weights are transformed together.
std::int64_t lean_channels(const Job& j) {
  const std::int64_t c = j.k->block;
  const std::int64_t most = kWinogradFilters / (2 * j.k->lanes) / c * c;
  const std::int64_t parts = up_div(j.in_channels, most);
  return up_div(up_div(j.in_channels, parts), c) * c;
}

// With weights as pack_winograd_taps() orders them; u has room for transformed ones.
void multiply_lean(const Job& j, std::int64_t group, std::int64_t pair, std::int64_t block, const TileBlock& tiles,
                   const float* v, float* u, float* m) {
  const std::int64_t all = j.in_channels, width = j.width(pair), step = lean_channels(j);
  const float* const w = j.weights + weights_at(j, group, pair);
  for (std::int64_t begin = 0; begin < all; begin += step) {
    const std::int64_t end = std::min(all, begin + step);
    j.k->winograd_weights(j.t, w + begin * 9 * width, end - begin, width, u);
    const bool last = end == all && pair + 1 == j.pairs;
    const std::int64_t next = last ? 0 : std::min(step, end < all ? all - end : all) * 9 * width;
    const std::int64_t each = up_div(up_div(next, j.elements), 16) * 16;
    multiply(j, pair, block, tiles, {begin, end, u, kWinogradStep, w + end * 9 * width, each}, v, m);
  }
}

void transform_output(const Job& j, std::int64_t group, std::int64_t block, const TileBlock& tiles, float* m) {
  const ConvShape& s = *j.s;
  const std::int64_t c = j.k->block, count = tiles.count;
  WinogradTile w;
  w.e_step = j.unit_blocks * count * c;
  const std::int64_t plane = group * j.out_blocks + block;
  w.bias = j.bias + plane * c;
  w.lo = j.bounds.lo;
  w.hi = j.bounds.hi;
  w.y_step = s.out[2] * c;
  for (std::int64_t i = 0; i < count; ++i) {
    const Place& at = tiles.places[i];
    const std::int64_t to = (((at.image * s.groups * j.out_blocks + plane) * s.out[1] + at.y) * s.out[2] + at.x) * c;
    w.v = m + i * c;
    w.y = j.y + to;
    w.residual = j.residual != nullptr ? j.residual + to : nullptr;
    w.rows = at.rows;
    w.columns = at.columns;
    j.k->winograd_output(j.t, w);
    if (!j.bounds.after) continue;
    elementwise_kernels().unary_rows(j.act, w.y, w.y_step, w.rows, w.columns * c);
  }
}

Job make_job(int t, bool lean, const ConvShape& s) {
  Job j;
  j.t = t;
  j.lean = lean;
  j.s = &s;
  j.k = &blocked_kernels();
  j.in_channels = s.in_channels / s.groups;
  j.out_channels = s.out_channels / s.groups;
  const std::int64_t c = j.k->block, lanes = j.k->lanes;
  j.elements = (t + 2) * (t + 2);
  j.in_blocks = up_div(j.in_channels, c);
  j.out_blocks = up_div(j.out_channels, c);
  j.vectors = j.out_blocks * c / lanes;
  j.pairs = up_div(j.vectors, 2);
  j.tiles_x = up_div(s.out[2], t);
  j.tiles_y = up_div(s.out[1], t);
  j.unit_pairs = std::max<std::int64_t>(1, c / (2 * lanes));
  j.unit_blocks = std::max<std::int64_t>(1, 2 * lanes / c);
  j.units = up_div(j.pairs, j.unit_pairs);
  return j;
}

// Of one block.
std::int64_t most_tiles(const Job& j) {
  const std::int64_t fit = (j.lean ? kLeanInputFloats : kInputFloats) / (j.elements * j.in_blocks * j.k->block);
  return std::clamp<std::int64_t>(fit, j.k->wide_pixels, j.lean ? kLeanTiles : kMostTiles);
}

}  // namespace

// [group][pair][channel][tap][vector or two]
void pack_winograd_taps(const ConvShape& shape, const void* weights, float* packed) {
  const Job j = make_job(4, true, shape);
  const std::int64_t floats = j.in_channels * 9;
  parallel_for(j.s->groups * j.pairs, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t group = i / j.pairs, pair = i % j.pairs, first = pair * 2 * j.k->lanes;
      const std::int64_t width = j.width(pair), there = std::min(width, j.out_channels - first);
      float* out = packed + weights_at(j, group, pair);
      if (width == 2 * j.k->lanes) {
        pack_filter_panel(weights, group * j.out_channels + first, there, floats, out);
        continue;
      }
      const char* rows = static_cast<const char*>(weights) + (group * j.out_channels + first) * floats * 4;
      for (std::int64_t k = 0; k < floats; ++k, out += width) {
        for (std::int64_t n = 0; n < there; ++n) std::memcpy(out + n, rows + (n * floats + k) * 4, 4);
        std::fill(out + there, out + width, 0.0F);
      }
    }
  });
}

bool blocked_winograd_once(int t, const ConvShape& s) {
  const Job j = make_job(t, true, s);
  return s.batch * j.tiles_y * j.tiles_x <= most_tiles(j);
}

std::size_t blocked_winograd_floats(int t, bool lean, const ConvShape& s) {
  const Job j = make_job(t, lean, s);
  return static_cast<std::size_t>(s.groups * (group_floats(j) + j.out_blocks * j.k->block));
}

bool blocked_winograd_supports(const ConvShape& s) {
  const std::int64_t block = blocked_kernels().block;
  ConvShape one = s;
  one.groups = 1;
  return winograd_supports(one) &&
         (s.groups == 1 || (s.in_channels / s.groups % block == 0 && s.out_channels / s.groups % block == 0));
}

// [group][pair][element][channel][vector or two]
void blocked_winograd_pack(int t, bool lean, const ConvShape& s, const void* weights, const float* bias, float* packed) {
  const Job j = make_job(t, lean, s);
  const std::int64_t lanes = j.k->lanes;
  pack_bias(bias, s.out_channels, s.groups * j.out_blocks * j.k->block, packed + s.groups * group_floats(j));
  if (lean) return pack_winograd_taps(s, weights, packed);
  const WinogradKernels& kernels = winograd_kernels();
  // Filters in the order of the packed weights, a few at a time.
  constexpr std::int64_t kFilters = 64;
  parallel_for(s.groups * j.pairs, 1, [&](std::int64_t begin, std::int64_t end) {
    float g[9 * kFilters + 32] = {};
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t group = i / j.pairs, pair = i % j.pairs;
      const std::int64_t width = j.width(pair);
      float* out = packed + weights_at(j, group, pair);
      const std::int64_t all = j.in_channels * width;
      for (std::int64_t at = 0; at < all; at += kFilters) {
        const std::int64_t count = std::min(kFilters, all - at);
        for (std::int64_t n = 0; n < count; ++n) {
          const std::int64_t m = pair * 2 * lanes + (at + n) % width;
          const std::int64_t c = (at + n) / width;
          float w[9] = {};
          if (m < j.out_channels) {
            const std::int64_t filter = (group * j.out_channels + m) * j.in_channels + c;
            std::memcpy(w, static_cast<const char*>(weights) + filter * 36, sizeof(w));
          }
          for (std::int64_t k = 0; k < 9; ++k) g[k * kFilters + n] = w[k];
        }
        kernels.weights(t, g, kFilters, count, out + at, all);
      }
    }
  });
}

void conv_blocked_winograd(int t, bool lean, const ConvShape& s, const float* x, const float* packed, const float* residual,
                           const UnarySpec& act, float* y) {
  Job j = make_job(t, lean, s);
  const std::int64_t c = j.k->block;
  j.weights = packed;
  j.bias = packed + s.groups * group_floats(j);
  j.residual = residual;
  j.act = act;
  j.bounds = Bounds(act);
  j.y = y;
  const std::int64_t total = s.batch * j.tiles_y * j.tiles_x;
  const std::int64_t threads = current_pool().threads();
  const std::int64_t step = j.k->wide_pixels;
  std::int64_t most = most_tiles(j);
  // Threads share the tiles where every one of them can have all weights at hand, else the outputs.
  if (!lean && j.elements * j.in_channels * j.out_channels <= kLightWeights) {
    most = std::clamp(up_div(total * s.groups, threads), step, most);
  }
  // As many blocks for each thread: one more would keep the others waiting.
  const std::int64_t even = up_div(up_div(total, most), threads) * threads;
  if (total > most && s.groups % threads != 0) most = std::max(step, up_div(total, even));
  const Cuts blocks(total, most);
  // Fewer blocks of tiles than threads: the outputs are cut too, and each part transforms the input for itself.
  const std::int64_t parts =
      std::clamp<std::int64_t>(threads / (s.groups * blocks.parts), 1, std::max<std::int64_t>(1, j.units / 4));
  const Cuts shares(j.units, up_div(j.units, parts));
  const std::int64_t v_floats = j.elements * j.in_blocks * most * c;
  const std::int64_t m_floats = j.elements * j.unit_blocks * most * c;
  parallel_for(s.groups * blocks.parts * shares.parts, 1, [&](std::int64_t begin, std::int64_t end) {
    float* v = thread_scratch(2, static_cast<std::size_t>(v_floats));
    float* m = thread_scratch(3, static_cast<std::size_t>(m_floats));
    float* of_weights = lean ? thread_scratch(1, static_cast<std::size_t>(j.elements * kWinogradStep)) : nullptr;
    std::int64_t transformed = -1;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t place = i / shares.parts, share = i % shares.parts;
      const std::int64_t group = place / blocks.parts, b = place % blocks.parts;
      const TileBlock tiles(j.t, s, blocks.begin(b), blocks.size(b));
      if (transformed != place) transform_input(j, x, group, tiles, v);
      transformed = place;
      for (std::int64_t u = shares.begin(share); u < shares.begin(share + 1); ++u) {
        const std::int64_t block = u * j.unit_blocks;
        for (std::int64_t p = u * j.unit_pairs; p < std::min(j.pairs, (u + 1) * j.unit_pairs); ++p) {
          if (lean) {
            multiply_lean(j, group, p, block, tiles, v, of_weights, m);
          } else {
            multiply_packed(j, group, p, block, tiles, v, m);
          }
        }
        for (std::int64_t o = 0; o < j.unit_blocks && block + o < j.out_blocks; ++o) {
          transform_output(j, group, block + o, tiles, m + o * tiles.count * c);
        }
      }
    }
  });
}

}  // namespace sdx::cpu
