#include "kernels/cpu/conv/blocked/tiled/blocked_winograd.h"

#include <cstring>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/blocked/blocked_joined.h"
#include "kernels/cpu/conv/blocked/blocked_joined_simd.h"
#include "kernels/cpu/conv/blocked/blocked_tasks.h"
#include "kernels/cpu/conv/blocked/tiled/blocked_direct.h"
#include "kernels/cpu/conv/blocked/tiled/blocked_image_tile.h"
#include "kernels/cpu/conv/blocked/tiled/blocked_tiles.h"
#include "kernels/cpu/conv/blocked/tiled/blocked_winograd_simd.h"
#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/conv/winograd/winograd.h"
#include "kernels/cpu/conv/winograd/winograd_simd.h"
#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kMostTiles = 48;             // of one block of tiles
constexpr std::int64_t kInputFloats = 384 * 1024;   // transformed input of one block
constexpr std::int64_t kLightWeights = 512 * 1024;  // floats
// The floats that a second-level cache of 1 MB, the smallest of machines with AVX-512, holds beside the image.
constexpr std::int64_t kCacheFloats = 240 * 1024;
// Limits for weights that are transformed in each run: more tiles share a transform.
constexpr std::int64_t kLeanTiles = kMostPlaces;
constexpr std::int64_t kLeanInputFloats = 1024 * 1024;

struct BlockedWinograd : TiledConv {
  int t;
  bool lean;  // weights are stored untransformed, and transformed in each run
  std::int64_t elements;

  BlockedWinograd(int tile, bool is_lean, const ConvShape& shape)
      : TiledConv(shape), t(tile), lean(is_lean), elements((tile + 2) * (tile + 2)) {}
  std::int64_t filter_floats() const { return lean ? 9 : elements; }  // of one channel
  // The most tiles of a block.
  std::int64_t most_tiles() const {
    const std::int64_t fit = (lean ? kLeanInputFloats : kInputFloats) / (elements * in_blocks * k->block);
    return std::clamp<std::int64_t>(fit, k->wide_pixels, lean ? kLeanTiles : kMostTiles);
  }
  // As many of `of_tiles` as fit the cache with their products and all weights, if all weights fit. Zen 5, ms for six
  // convolutions, before and after:
  //   128 to 32 channels, 56 x 56   1 thread 2.11, 1.98   2 threads 1.34, 1.05
  //   64 to 64 channels, 80 x 80    1 thread 3.57, 3.71   2 threads 2.03, 1.94
  // With several pairs, more products share a transform, and one thread waits less for the third-level cache than two.
  std::int64_t tiles_beside_weights(std::int64_t of_tiles) const {
    constexpr int kAvx512Lanes = 16;
    if (lean || k->lanes != kAvx512Lanes || (pairs > 1 && current_pool().threads() == 1)) return of_tiles;
    const std::int64_t room = kCacheFloats - elements * in_channels * out_channels;
    const std::int64_t fit = room / (elements * (in_blocks + unit_blocks) * k->block);
    return fit < k->wide_pixels || of_tiles <= fit ? of_tiles : fit / k->wide_pixels * k->wide_pixels;
  }
};

// One block of tiles.
struct Work {
  const BlockedWinograd* j;
  const float* x;
  std::int64_t group;
  TileBlock tiles;
  float* v;  // transformed input: [element][block of channels][tile][c]
  float* m;  // products: [element][block of the unit][tile][c]
  float* u;  // room for transforming lean weights

  Work(const BlockedWinograd& job, const float* input, std::int64_t of_group, std::int64_t first, std::int64_t count,
       std::int64_t most)
      : j(&job), x(input), group(of_group), tiles(job.t, *job.s, first, count) {
    const std::int64_t each = j->elements * most * j->k->block;
    v = thread_scratch(2, static_cast<std::size_t>(j->in_blocks * each));
    m = thread_scratch(3, static_cast<std::size_t>(j->unit_blocks * each));
    u = j->lean ? thread_scratch(1, static_cast<std::size_t>(j->elements * kWinogradStep)) : nullptr;
  }

  void transform() const {
    const std::int64_t c = j->k->block;
    const auto input = blocked_winograd_kernels().input;
    WinogradTile w;
    w.e_step = j->in_blocks * tiles.count * c;
    for (std::int64_t b = 0; b < j->in_blocks; ++b) {
      for (std::int64_t i = 0; i < tiles.count; ++i) {
        place_input(*j, x, group, b, tiles.places[i], w);
        w.v = v + (b * tiles.count + i) * c;
        input(j->t, w);
      }
    }
  }

  // Every input element of a tile contributes to one of the corners, those of the points 0 and infinity, which all tiles have.
  bool tame() const {
    const std::int64_t each = j->in_blocks * tiles.count * j->k->block, side = j->t + 2;
    for (const std::int64_t e : {std::int64_t{0}, side - 1, side * (side - 1), side * side - 1}) {
      if (!blocked_joined_kernels().tame(v + e * each, each)) return false;
    }
    return true;
  }

  void multiply(std::int64_t pair, std::int64_t block) const {
    if (!j->lean) {
      const std::int64_t floats = j->width(pair) * j->in_channels;
      const float* const w = j->weights + j->weights_at(group, pair, j->elements);
      return multiply_slab(pair, block, {0, j->in_channels, w, floats, w + floats, floats});
    }
    const auto transform = [&](const float* w, std::int64_t channels, std::int64_t width) {
      blocked_winograd_kernels().weights(j->t, w, channels, width, u);
    };
    multiply_lean(*j, group, pair, j->elements, u, transform, [&](const Slab& slab) { multiply_slab(pair, block, slab); });
  }

  void multiply_slab(std::int64_t pair, std::int64_t block, const Slab& slab) const {
    const std::int64_t last = j->t + 1, each = tiles.count * j->k->block;
    for (std::int64_t e = 0; e < j->elements; ++e) {
      const std::int64_t row = e / (j->t + 2), column = e % (j->t + 2);
      const auto range = tiles.with(row <= tiles.cut_rows || row == last, column <= tiles.cut_columns || column == last);
      multiply_element(*j, pair, block, slab, e,
                       {range, tiles.count, v + e * j->in_blocks * each, m + e * j->unit_blocks * each});
    }
  }

  void output(std::int64_t block, std::int64_t of_unit) const {
    const std::int64_t c = j->k->block;
    const auto to_outputs = blocked_winograd_kernels().output;
    WinogradTile w;
    w.e_step = j->unit_blocks * tiles.count * c;
    for (std::int64_t i = 0; i < tiles.count; ++i) {
      place_output(*j, group, block, tiles.places[i], w);
      w.v = m + (of_unit * tiles.count + i) * c;
      if (is_uneven(*j, j->t, group, tiles.places[i])) {
        output_directly(*j, j->t, j->filter_floats(), x, group, block, tiles.places[i]);
      } else {
        to_outputs(j->t, w);
      }
      finish_tile(*j, w);
    }
  }
};

// [group][pair][channel][tap][vector or two]
void pack_lean(const ConvShape& shape, const void* weights, float* packed) {
  const TiledConv j(shape);
  const std::int64_t floats = j.in_channels * 9;
  parallel_for(j.s->groups * j.pairs, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t group = i / j.pairs, pair = i % j.pairs, first = pair * 2 * j.k->lanes;
      const std::int64_t width = j.width(pair), there = std::min(width, j.out_channels - first);
      float* out = packed + j.weights_at(group, pair, 9);
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

}  // namespace

bool blocked_winograd_once(int t, const ConvShape& s) {
  const BlockedWinograd j(t, true, s);
  return j.tiles(t) <= j.most_tiles();
}

double blocked_winograd_cost(int t, const ConvShape& s) {
  const TiledConv j(s);
  const std::int64_t pixels = j.k->wide_pixels;
  double sum = 0.0;
  for (const bool all_rows : {true, false}) {
    for (const bool all_columns : {true, false}) {
      const AxisPoints rows = axis_points(s.out[1], t, 2, all_rows), columns = axis_points(s.out[2], t, 2, all_columns);
      const std::int64_t whole = up_div(s.batch * rows.tiles * columns.tiles, pixels) * pixels;
      sum += static_cast<double>(rows.points * columns.points) * static_cast<double>(whole);
    }
  }
  return j.with_transforms(sum);
}

std::size_t blocked_winograd_floats(int t, bool lean, const ConvShape& s) {
  const BlockedWinograd j(t, lean, s);
  return static_cast<std::size_t>(s.groups * (j.group_floats(j.filter_floats()) + j.out_blocks * j.k->block));
}

bool blocked_winograd_supports(const ConvShape& s) {
  ConvShape one = s;
  one.groups = 1;
  // See phases_of(). Each phase has its own border: the workspace for thousands of them would be many times the image.
  constexpr std::int64_t kPhases = 36;
  if (s.dilation[1] > kPhases || s.dilation[2] > kPhases) return false;
  one.dilation[1] = one.dilation[2] = 1;
  return winograd_supports(one) && whole_groups(s);
}

// [group][pair][element][channel][vector or two]
void blocked_winograd_pack(int t, bool lean, const ConvShape& s, const void* weights, const float* bias, float* packed) {
  const BlockedWinograd j(t, lean, s);
  const std::int64_t lanes = j.k->lanes;
  pack_bias(bias, s.out_channels, s.groups * j.out_blocks * j.k->block, packed + s.groups * j.group_floats(j.filter_floats()));
  if (lean) return pack_lean(s, weights, packed);
  const WinogradKernels& kernels = winograd_kernels();
  // Filters in the order of the packed weights, a few at a time.
  constexpr std::int64_t kFilters = 64;
  parallel_for(s.groups * j.pairs, 1, [&](std::int64_t begin, std::int64_t end) {
    float g[9 * kFilters + 32] = {};
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t group = i / j.pairs, pair = i % j.pairs;
      const std::int64_t width = j.width(pair);
      float* out = packed + j.weights_at(group, pair, j.elements);
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
  BlockedWinograd j(t, lean, s);
  j.set_run(packed, packed + s.groups * j.group_floats(j.filter_floats()), residual, act, y);
  const std::int64_t tiles = j.tiles(t);
  std::int64_t most = j.most_tiles();
  // Threads split the tiles if weights are few enough for each of them to read all, else the outputs.
  if (!lean && j.elements * j.in_channels * j.out_channels <= kLightWeights) {
    most = std::clamp<std::int64_t>(up_div(tiles * s.groups, current_pool().threads()), j.k->wide_pixels, most);
  }
  most = j.tiles_beside_weights(std::min(most, tiles));
  std::vector<std::uint8_t> uneven(static_cast<std::size_t>(s.groups * tiles));
  if (mark_uneven_tiles(j, t, x, uneven.data())) j.uneven = uneven.data();
  LeftOut left;
  if (s.joined > 1) j.left_out = &left;
  run_tiles<Work>(j, x, tiles, most);
  if (left.parts().empty()) return;
  compute_left_out(s, left, {x, packed, j.group_floats(j.filter_floats()), residual, y},
                   [&](const ConvShape& one, const float* from, const float* weights, const float* to_add, float* to) {
                     conv_blocked_winograd(t, lean, one, from, weights, to_add, act, to);
                   });
}

}  // namespace sdx::cpu
