#include "kernels/cpu/conv/blocked/tiled/blocked_tiles.h"

#include <limits>

#include "kernels/cpu/conv/blocked/blocked_tasks.h"
#include "kernels/cpu/conv/blocked/tiled/blocked_image_tile.h"
#include "kernels/cpu/elementwise/elementwise_simd.h"

namespace sdx::cpu {

TileBlock::TileBlock(std::int64_t t, const ConvShape& s, std::int64_t first, std::int64_t tiles) : count(tiles) {
  const std::int64_t tiles_y = up_div(s.out[1], t), tiles_x = up_div(s.out[2], t);
  cut_rows = (s.out[1] - 1) % t + 1;
  cut_columns = (s.out[2] - 1) % t + 1;
  std::int64_t image = first / (tiles_x * tiles_y);
  std::int64_t ty = first / tiles_x % tiles_y, tx = first % tiles_x;
  // Tiles with all rows but not all columns, with all of both, with all columns only, with neither.
  Place parts[4][kMostPlaces];
  std::int64_t sizes[4] = {};
  for (std::int64_t i = 0; i < tiles; ++i) {
    const std::int64_t rows = ty + 1 < tiles_y ? t : cut_rows, columns = tx + 1 < tiles_x ? t : cut_columns;
    const int part = rows == t ? (columns == t ? 1 : 0) : (columns == t ? 2 : 3);
    parts[part][sizes[part]++] = {image, ty * t, tx * t, rows, columns};
    if (++tx < tiles_x) continue;
    tx = 0;
    if (++ty < tiles_y) continue;
    ty = 0;
    ++image;
  }
  Place* to = places;
  for (int part = 0; part < 4; ++part) to = std::copy_n(parts[part], sizes[part], to);
  full_columns = sizes[0];
  full_rows = sizes[0] + sizes[1];
  full_columns_end = full_rows + sizes[2];
}

AxisPoints axis_points(std::int64_t outputs, std::int64_t t, std::int64_t more, bool of_all) {
  const std::int64_t cut = (outputs - 1) % t + 1;
  return of_all ? AxisPoints{cut + more, up_div(outputs, t)} : AxisPoints{t - cut, outputs / t};
}

TiledConv::TiledConv(const ConvShape& shape) : s(&shape), k(&blocked_kernels()) {
  const std::int64_t c = k->block, lanes = k->lanes;
  in_channels = s->in_channels / s->groups;
  out_channels = s->out_channels / s->groups;
  in_blocks = up_div(in_channels, c);
  out_blocks = up_div(out_channels, c);
  vectors = out_blocks * c / lanes;
  pairs = up_div(vectors, 2);
  unit_pairs = std::max<std::int64_t>(1, c / (2 * lanes));
  unit_blocks = std::max<std::int64_t>(1, 2 * lanes / c);
  units = up_div(pairs, unit_pairs);
}

void TiledConv::set_run(const float* packed, const float* packed_bias, const float* to_add, const UnarySpec& activation,
                        float* result) {
  weights = packed;
  bias = packed_bias;
  residual = to_add;
  act = activation;
  bounds = Bounds(activation);
  y = result;
}

void place_input(const TiledConv& j, const float* x, std::int64_t group, std::int64_t b, const Place& at, ImageTile& t) {
  const ConvShape& s = *j.s;
  const std::int64_t c = j.k->block;
  const std::int64_t iy = at.y * s.stride[1] - s.pad[1], ix = at.x * s.stride[2] - s.pad[2];
  const std::int64_t rows = (at.rows - 1) * s.stride[1] + 3, columns = (at.columns - 1) * s.stride[2] + 3;
  t.rows = at.rows;
  t.columns = at.columns;
  t.row_step = s.in[2] * c;
  t.row0 = std::clamp<std::int64_t>(-iy, 0, rows);
  t.row1 = std::clamp<std::int64_t>(s.in[1] - iy, 0, rows);
  t.column0 = std::clamp<std::int64_t>(-ix, 0, columns);
  t.column1 = std::clamp<std::int64_t>(s.in[2] - ix, 0, columns);
  const std::int64_t plane = at.image * blocks_between_images(s, c) + group * j.in_blocks + b;
  t.x = x + ((plane * s.in[1] + iy) * s.in[2] + ix) * c;
}

void place_output(const TiledConv& j, std::int64_t group, std::int64_t b, const Place& at, ImageTile& t) {
  const ConvShape& s = *j.s;
  const std::int64_t c = j.k->block, plane = group * j.out_blocks + b;
  const std::int64_t to = (((at.image * s.groups * j.out_blocks + plane) * s.out[1] + at.y) * s.out[2] + at.x) * c;
  t.rows = at.rows;
  t.columns = at.columns;
  t.bias = j.bias + plane * c;
  t.residual = j.residual != nullptr ? j.residual + to : nullptr;
  t.lo = j.bounds.lo;
  t.hi = j.bounds.hi;
  t.y = j.y + to;
  t.y_step = s.out[2] * c;
}

void finish_tile(const TiledConv& j, const ImageTile& t) {
  if (j.bounds.after) elementwise_kernels().unary_rows(j.act, t.y, t.y_step, t.rows, t.columns * j.k->block);
}

void leave_out(const TiledConv& j, std::int64_t group, const TileBlock& tiles) {
  for (std::int64_t i = 0; i < tiles.count; ++i) {
    const Place& p = tiles.places[i];
    j.left_out->add({p.image, group, p.y, p.y + p.rows, p.x, p.x + p.columns});
  }
}

void multiply_element(const TiledConv& j, std::int64_t pair, std::int64_t block, const Slab& slab, std::int64_t e,
                      const TileElement& at) {
  static constexpr float kNone[32] = {};
  const std::int64_t c = j.k->block, lanes = j.k->lanes, channels = slab.end - slab.begin;
  BlockedTile t;
  t.pixel_step = c;
  t.block_step = at.all * c;
  t.blocks = channels / c;
  t.run = c;
  t.tail_taps = 1;
  t.tail_run = channels % c;
  t.wide = j.width(pair) == 2 * lanes;
  t.w = slab.w + e * slab.step;
  t.bias = kNone;
  t.lo = -std::numeric_limits<float>::infinity();
  t.hi = std::numeric_limits<float>::infinity();
  const Cuts cuts(at.values.end - at.values.begin, t.wide ? j.k->wide_pixels : j.k->narrow_pixels);
  const Ahead ahead(slab.then + (e - 1) * slab.then_step, slab.then_step, up_div(channels, c), cuts.parts);
  equal_tiles(cuts, [&](std::int64_t first, std::int64_t count) {
    const std::int64_t p = (at.values.begin + cuts.begin(first)) * c;
    ahead.set(t, first);
    t.x = at.v + slab.begin * at.all + p;
    t.pixels = cuts.size(first);
    t.tiles = count;
    for (std::int64_t n = 0; n < (t.wide ? 2 : 1); ++n) {
      const std::int64_t channel = (2 * pair + n) * lanes;
      t.y[n] = at.m + (channel / c - block) * at.all * c + p + channel % c;
      t.residual[n] = slab.begin > 0 ? t.y[n] : nullptr;
    }
    j.k->tile(t);
  });
}

}  // namespace sdx::cpu
