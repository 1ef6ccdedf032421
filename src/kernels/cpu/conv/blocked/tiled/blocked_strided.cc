// 3x3 convolutions with stride 2 by transformed tiles: see blocked_strided_simd.h. Weights keep their original size and are
// transformed in each run, which costs as much as the products of one tile of 4x4 outputs.

#include "kernels/cpu/conv/blocked/tiled/blocked_strided.h"

#include <vector>

#include "kernels/cpu/conv/blocked/blocked_joined.h"
#include "kernels/cpu/conv/blocked/blocked_joined_simd.h"
#include "kernels/cpu/conv/blocked/blocked_tasks.h"
#include "kernels/cpu/conv/blocked/tiled/blocked_direct.h"
#include "kernels/cpu/conv/blocked/tiled/blocked_strided_simd.h"
#include "kernels/cpu/conv/blocked/tiled/blocked_tiles.h"
#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kTile = 4;                  // outputs along each axis
constexpr std::int64_t kPoints = 5;                // of two taps
constexpr std::int64_t kTileValues = 81;           // of a full tile in all parts: 25 + 5 * 4 + 5 * 4 + 16
constexpr std::int64_t kInputFloats = 512 * 1024;  // transformed input of one block of tiles

// Where each tile's values begin in each part of a block of tiles; the last entry is the number of all values.
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

// One block of tiles. A buffer holds the elements of its parts: [part][element][block of channels][value][c].
struct Work {
  const TiledConv* j;
  const float* x;
  std::int64_t group;
  TileBlock tiles;
  Values values;
  float* v;  // transformed input
  float* m;  // products, of the blocks of a unit
  float* u;  // transformed weights

  Work(const TiledConv& job, const float* input, std::int64_t of_group, std::int64_t first, std::int64_t count, std::int64_t most)
      : j(&job), x(input), group(of_group), tiles(kTile, *job.s, first, count), values(tiles) {
    const std::int64_t each = kTileValues * most * j->k->block;
    v = thread_scratch(2, static_cast<std::size_t>(j->in_blocks * each));
    m = thread_scratch(3, static_cast<std::size_t>(j->unit_blocks * each));
    u = thread_scratch(1, static_cast<std::size_t>(kStridedElements * kWinogradStep));
  }

  std::int64_t all(int part) const { return values.first[part][tiles.count]; }
  // Where a part begins; for part 4, the size of all parts.
  std::int64_t begin(int part, std::int64_t floats) const {
    constexpr std::int64_t kElements[4] = {25, 5, 5, 1};
    std::int64_t sum = 0;
    for (int i = 0; i < part; ++i) sum += kElements[i] * all(i) * floats;
    return sum;
  }
  // The values for which element i of a part exists.
  TileBlock::Range range(int part, std::int64_t i) const {
    const std::int64_t row = part == 0 ? i / kPoints : (part == 1 ? i : 0),
                       column = part == 0 ? i % kPoints : (part == 2 ? i : 0);
    const auto has = [](std::int64_t point, std::int64_t cut) { return point < cut || point == kPoints - 1; };
    const TileBlock::Range r = tiles.with(has(row, tiles.cut_rows), has(column, tiles.cut_columns));
    return {values.first[part][r.begin], values.first[part][r.end]};
  }
  // Finds tile i's elements in one of `blocks` blocks of channels.
  void place(StridedTile& t, std::int64_t i, std::int64_t block, std::int64_t blocks, float* buffer) const {
    const std::int64_t c = j->k->block;
    for (int part = 0; part < 4; ++part) {
      t.part[part] = buffer + begin(part, blocks * c) + (block * all(part) + values.first[part][i]) * c;
      if (part < 3) t.step[part] = blocks * all(part) * c;
    }
  }

  void transform() const {
    StridedTile t;
    for (std::int64_t b = 0; b < j->in_blocks; ++b) {
      for (std::int64_t i = 0; i < tiles.count; ++i) {
        place_input(*j, x, group, b, tiles.places[i], t);
        place(t, i, b, j->in_blocks, v);
        strided_kernels().input(t);
      }
    }
  }

  // Every input element of a tile contributes to one of its part's points 0 and infinity, which all tiles have.
  bool tame() const {
    const std::int64_t c = j->in_blocks * j->k->block;
    const auto is_tame = [&](int part, std::int64_t e) {
      return blocked_joined_kernels().tame(v + begin(part, c) + e * c * all(part), c * all(part));
    };
    for (const std::int64_t e : {0, 4, 20, 24}) {
      if (!is_tame(0, e)) return false;
    }
    return is_tame(1, 0) && is_tame(1, 4) && is_tame(2, 0) && is_tame(2, 4) && is_tame(3, 0);
  }

  void multiply(std::int64_t pair, std::int64_t block) const {
    const auto weights = [&](const float* w, std::int64_t channels, std::int64_t width) {
      strided_kernels().weights(w, channels, width, u);
    };
    multiply_lean(*j, group, pair, kStridedElements, u, weights, [&](const Slab& slab) {
      for (std::int64_t e = 0; e < kStridedElements; ++e) multiply_element(*j, pair, block, slab, e, element(e));
    });
  }

  TileElement element(std::int64_t e) const {
    constexpr std::int64_t kFirst[4] = {0, 25, 30, 35};
    const int part = e < 25 ? 0 : (e < 30 ? 1 : (e < 35 ? 2 : 3));
    const std::int64_t i = e - kFirst[part], in = j->in_blocks * j->k->block, out = j->unit_blocks * j->k->block;
    return {range(part, i), all(part), v + begin(part, in) + i * in * all(part), m + begin(part, out) + i * out * all(part)};
  }

  void output(std::int64_t block, std::int64_t of_unit) const {
    StridedTile t;
    for (std::int64_t i = 0; i < tiles.count; ++i) {
      place_output(*j, group, block, tiles.places[i], t);
      if (is_uneven(*j, kTile, group, tiles.places[i])) {
        output_directly(*j, kTile, 9, x, group, block, tiles.places[i]);
      } else {
        place(t, i, of_unit, j->unit_blocks, m);
        strided_kernels().output(t);
      }
      finish_tile(*j, t);
    }
  }
};

std::int64_t most_tiles(const TiledConv& j) {
  return std::clamp<std::int64_t>(kInputFloats / (kTileValues * j.in_blocks * j.k->block), j.k->wide_pixels, kMostPlaces);
}

}  // namespace

double blocked_strided_cost(const ConvShape& s) {
  const TiledConv j(s);
  // Register tiles of fewer than four pixels take as long as tiles of four, because their chains do not hide an FMA's latency.
  const auto whole = [&](std::int64_t n) { return static_cast<double>(std::max(n, 4 * up_div(n, j.k->wide_pixels))); };
  double sum = whole(s.batch * s.out[1] * s.out[2]);
  for (const bool all_rows : {true, false}) {
    const AxisPoints rows = axis_points(s.out[1], kTile, 1, all_rows), columns = axis_points(s.out[2], kTile, 1, all_rows);
    sum += static_cast<double>(rows.points) * whole(s.batch * rows.tiles * s.out[2]);
    sum += static_cast<double>(columns.points) * whole(s.batch * columns.tiles * s.out[1]);
    for (const bool all_columns : {true, false}) {
      const AxisPoints other = axis_points(s.out[2], kTile, 1, all_columns);
      sum += static_cast<double>(rows.points * other.points) * whole(s.batch * rows.tiles * other.tiles);
    }
  }
  // A filter's transform takes as long as 80 products.
  sum += 80.0 * static_cast<double>(up_div(j.tiles(kTile), most_tiles(j)));
  return j.with_transforms(sum);
}

bool blocked_strided_supports(const ConvShape& s) {
  for (int i = 1; i < 3; ++i) {
    if (s.kernel[i] != 3 || s.stride[i] != 2 || s.dilation[i] != 1) return false;
  }
  return whole_groups(s);
}

void conv_blocked_strided(const ConvShape& s, const float* x, const float* packed, const float* residual, const UnarySpec& act,
                          float* y) {
  TiledConv j(s);
  j.set_run(packed, packed + s.groups * j.group_floats(9), residual, act, y);
  std::vector<std::uint8_t> uneven(to_size(s.groups * j.tiles(kTile)));
  if (mark_uneven_tiles(j, kTile, x, uneven.data())) j.uneven = uneven.data();
  LeftOut left;
  if (s.joined > 1) j.left_out = &left;
  run_tiles<Work>(j, x, j.tiles(kTile), most_tiles(j));
  if (left.parts().empty()) return;
  compute_left_out(s, left, {x, packed, j.group_floats(9), residual, y},
                   [&](const ConvShape& one, const float* from, const float* weights, const float* to_add, float* to) {
                     conv_blocked_strided(one, from, weights, to_add, act, to);
                   });
}

}  // namespace sdx::cpu
