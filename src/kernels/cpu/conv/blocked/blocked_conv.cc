#include "kernels/cpu/conv/blocked/blocked_conv.h"

#include <cstring>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/blocked/blocked_copies.h"
#include "kernels/cpu/conv/blocked/blocked_depthwise.h"
#include "kernels/cpu/conv/blocked/blocked_joined.h"
#include "kernels/cpu/conv/blocked/blocked_joined_simd.h"
#include "kernels/cpu/conv/blocked/blocked_listed.h"
#include "kernels/cpu/conv/blocked/blocked_regions.h"
#include "kernels/cpu/conv/blocked/blocked_simd.h"
#include "kernels/cpu/conv/blocked/blocked_split.h"
#include "kernels/cpu/conv/blocked/blocked_tasks.h"
#include "kernels/cpu/conv/blocked/tiled/blocked_phases.h"
#include "kernels/cpu/conv/blocked/tiled/blocked_strided.h"
#include "kernels/cpu/conv/blocked/tiled/blocked_winograd.h"
#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/conv/conv_windows.h"
#include "kernels/cpu/elementwise/elementwise_simd.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

// Input of one block of pixels: half of a typical second-level cache. It is read once per pair of output vectors, at 4 bytes per
// cycle, while the pair's weights, read at 10 bytes per cycle, stay closer.
constexpr std::int64_t kInputFloats = 128 * 1024;

// The packed weights of direct convolutions: for each group, pairs of output vectors, a single one last.
struct Layout {
  std::int64_t in_block, channels, blocks, tail;  // input channels of a group
  std::int64_t out_blocks, vectors, pairs;        // outputs of a group
  std::int64_t k;                                 // elements of a window
  std::int64_t lanes;

  Layout(const ConvShape& s, bool plain, const BlockedKernels& kernels) {
    in_block = plain ? 1 : kernels.block;
    channels = s.in_channels / s.groups;
    blocks = channels / in_block;
    tail = channels % in_block;
    out_blocks = up_div(s.out_channels / s.groups, kernels.block);
    lanes = kernels.lanes;
    vectors = out_blocks * kernels.block / lanes;
    pairs = up_div(vectors, 2);
    k = channels * s.kernel[1] * s.kernel[2];
  }
  std::int64_t group_floats() const { return vectors * lanes * k; }
};

float read_f32(const void* p, std::int64_t i) {
  float v;
  std::memcpy(&v, static_cast<const char*>(p) + i * 4, sizeof(v));
  return v;
}

void pack_direct(const ConvShape& s, const Layout& l, const void* weights, float* packed) {
  const std::int64_t outputs = s.out_channels / s.groups;
  const std::int64_t area = s.kernel[1] * s.kernel[2];
  parallel_for(s.groups * l.pairs, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t group = i / l.pairs, pair = i % l.pairs;
      const std::int64_t width = 2 * pair + 1 < l.vectors ? 2 * l.lanes : l.lanes;
      float* out = packed + group * l.group_floats() + pair * 2 * l.lanes * l.k;
      if (area == 1 && width == 2 * l.lanes) {
        const std::int64_t first = pair * 2 * l.lanes;
        pack_filter_panel(weights, group * outputs + first, std::min(width, outputs - first), l.channels, out);
        continue;
      }
      for (std::int64_t c0 = 0; c0 < l.channels; c0 += l.in_block) {
        const std::int64_t ce = std::min(l.channels, c0 + l.in_block);
        for (std::int64_t tap = 0; tap < area; ++tap) {
          for (std::int64_t c = c0; c < ce; ++c, out += width) {
            for (std::int64_t j = 0; j < width; ++j) {
              const std::int64_t m = pair * 2 * l.lanes + j;
              out[j] = m < outputs ? read_f32(weights, ((group * outputs + m) * l.channels + c) * area + tap) : 0.0F;
            }
          }
        }
      }
    }
  });
}

struct BlockedArguments {
  const BlockedKernels* kernels;
  const ConvShape* s;
  Layout layout;
  const float* packed;
  const float* bias;
  const float* residual;
  UnarySpec act;
  Bounds bounds;
  float* y;
  LeftOut* left_out = nullptr;  // null: one group fills its blocks
};

// Rows of pixels to compute: `lines` of `width` outputs, whose first is output pixel `first` of the plane.
struct Lines {
  const float* x;
  std::int64_t line_step;
  std::int64_t lines, width, first;
  const std::int64_t* places = nullptr;  // offsets of one line's pixels from x, if they are not evenly spaced
  std::int64_t out_step = 0;             // from one line's first output pixel to the next line's; 0: width
};

// Activation functions other than bounds are applied while results are in the first-level cache: after this many floats of each
// vector.
constexpr std::int64_t kActivated = 1024;

// Activates `count` pixels of the blocks of channels that end with a tile's one or two vectors, at y0 and y1.
void activate(const BlockedArguments& j, float* y0, float* y1, std::int64_t count) {
  const std::int64_t c = j.kernels->block;
  elementwise_kernels().unary(j.act, y0, y0, count * c);
  if (y1 != nullptr) elementwise_kernels().unary(j.act, y1, y1, count * c);
}

// The chunks of 16 floats of a tile's windows, in the order of its weights.
std::vector<std::int64_t> chunks_of(const BlockedTile& t) {
  std::vector<std::int64_t> chunks;
  for (std::int64_t b = 0; b < t.blocks; ++b) {
    for (std::int64_t r = 0; r < t.rows; ++r) {
      for (std::int64_t q = 0; q < t.taps; ++q) {
        for (std::int64_t i = 0; i < t.run; i += 16) chunks.push_back(b * t.block_step + r * t.row_step + q * t.tap_step + i);
      }
    }
  }
  return chunks;
}

// Computes pairs from pair0 on by tiles of bfloat16, where that is faster. Returns the first one that is left.
std::int64_t run_split(const BlockedArguments& j, const BlockedTile& t, std::int64_t image, std::int64_t group,
                       std::int64_t pair0, std::int64_t pair1, const Lines& at) {
  const Layout& l = j.layout;
  const std::int64_t end = std::min(pair1, l.vectors / 2);  // the last one may be narrow
  if (l.lanes != 16 || l.in_block != 16 || l.tail != 0 || end <= pair0) return pair0;
  if (!split_pixels_pay(at.lines * at.width, l.k / 16, end - pair0)) return pair0;
  const std::int64_t plane = j.s->out[1] * j.s->out[2] * 16, first = 2 * pair0;
  const std::int64_t to = ((image * j.s->groups + group) * l.out_blocks + first) * plane + at.first * 16;
  const std::vector<std::int64_t> chunks = chunks_of(t);
  const float* const weights = j.packed + group * l.group_floats() + first * l.lanes * l.k;
  const float* const bias = j.bias + (group * l.vectors + first) * l.lanes;
  multiply_split_pixels({at.x, at.line_step, t.pixel_step, at.lines, at.width, at.places, chunks.data(), l.k / 16}, weights,
                        end - pair0, {j.y + to, plane, bias, j.residual != nullptr ? j.residual + to : nullptr, j.act});
  return end;
}

// Pairs [pair0, pair1) of output vectors of one image and group.
void run_pairs(const BlockedArguments& j, BlockedTile t, std::int64_t image, std::int64_t group, std::int64_t pair0,
               std::int64_t pair1, const Lines& at) {
  const Layout& l = j.layout;
  const BlockedKernels& k = *j.kernels;
  const std::int64_t plane = j.s->out[1] * j.s->out[2];
  const std::int64_t planes = image * j.s->groups * l.out_blocks + group * l.out_blocks;
  const std::int64_t out_step = at.out_step != 0 ? at.out_step : at.width;
  if (t.tap_weights == 0) pair0 = run_split(j, t, image, group, pair0, pair1, at);
  for (std::int64_t pair = pair0; pair < pair1; ++pair) {
    t.wide = 2 * pair + 1 < l.vectors;
    t.w = j.packed + group * l.group_floats() + pair * 2 * l.lanes * l.k;
    t.bias = j.bias + group * l.vectors * l.lanes + pair * 2 * l.lanes;
    std::int64_t to[2];
    for (int v = 0; v < 2; ++v) {
      const std::int64_t channel = (2 * pair + v) * l.lanes;
      to[v] = ((planes + channel / k.block) * plane + at.first) * k.block + channel % k.block;
    }
    const Cuts cuts(at.width, at.places != nullptr ? k.spread_pixels : (t.wide ? k.wide_pixels : k.narrow_pixels));
    const Ahead ahead(t.w, (t.wide ? 2 : 1) * l.lanes * l.k, l.blocks + (l.tail > 0 ? 1 : 0), at.lines * cuts.parts);
    // With fewer lanes than half a block (no vectors), the block's last pair activates all of it.
    const bool soon = j.bounds.after && 2 * l.lanes >= k.block;
    float* const start = j.y + to[0] / k.block * k.block;
    const std::int64_t most = soon ? up_div(kActivated, k.block * cuts.size(0)) : cuts.parts;
    for (std::int64_t line = 0; line < at.lines; ++line) {
      equal_tiles(cuts, [&](std::int64_t first, std::int64_t count) {
        t.pixels = cuts.size(first);
        for (std::int64_t i = first; i < first + count; i += most) {
          const std::int64_t p = cuts.begin(i);
          const std::int64_t off = (line * out_step + p) * k.block;
          t.x = at.x + line * at.line_step + (at.places != nullptr ? 0 : p * t.pixel_step);
          t.places = at.places != nullptr ? at.places + p : nullptr;
          t.tiles = std::min(most, first + count - i);
          if (t.tap_weights == 0) ahead.set(t, line * cuts.parts + i);
          for (int v = 0; v < (t.wide ? 2 : 1); ++v) {
            t.y[v] = j.y + to[v] + off;
            t.residual[v] = j.residual != nullptr ? j.residual + to[v] + off : nullptr;
          }
          k.tile(t);
          if (soon) activate(j, t.y[0], t.wide && l.lanes == k.block ? t.y[1] : nullptr, t.tiles * t.pixels);
        }
      });
    }
    if (!j.bounds.after || soon || (pair + 1) * 2 * l.lanes % k.block != 0) continue;
    for (std::int64_t line = 0; line < at.lines; ++line) activate(j, start + line * out_step * k.block, nullptr, at.width);
  }
}

// Cuts the output vectors into parts if the pixels alone are too few tasks for the threads.
Cuts share_pairs(const BlockedArguments& j, std::int64_t tasks) {
  const std::int64_t threads = current_pool().threads();
  const std::int64_t unit = std::max<std::int64_t>(1, j.kernels->block / (2 * j.layout.lanes));  // pairs that fill blocks
  const std::int64_t units = up_div(j.layout.pairs, unit);
  const std::int64_t parts = threads <= 1 || tasks >= 4 * threads ? 1 : std::min(units, up_div(4 * threads, tasks));
  return Cuts(units, up_div(units, parts));
}

void run_pointwise(const BlockedArguments& j, const float* x) {
  const ConvShape& s = *j.s;
  const Layout& l = j.layout;
  const std::int64_t pixels = s.out[1] * s.out[2];
  // If there are few weights, reading them again for each chunk costs nothing, so chunks may be smaller.
  const std::int64_t input = l.group_floats() <= 64 * 1024 ? 48 * 1024 : kInputFloats;
  std::int64_t most = std::min(pixels, std::max<std::int64_t>(input / l.channels, 4 * j.kernels->wide_pixels));
  if (const std::int64_t threads = current_pool().threads(); s.batch < threads && shares_pixels(pixels)) {
    most = up_div(pixels, up_div(up_div(pixels, most), threads) * threads);
  }
  const Cuts chunks(pixels, most);
  const std::int64_t outer = s.batch * s.groups * chunks.parts;
  const Cuts shares = share_pairs(j, outer);
  const std::int64_t unit = std::max<std::int64_t>(1, j.kernels->block / (2 * l.lanes));
  BlockedTile t;
  t.pixel_step = l.in_block;
  t.block_step = l.in_block * pixels;
  t.blocks = l.blocks;
  t.run = l.in_block;
  t.tail_taps = 1;
  t.tail_run = l.tail;
  t.lo = j.bounds.lo;
  t.hi = j.bounds.hi;
  const std::int64_t image_blocks = blocks_between_images(s, l.in_block);
  const std::int64_t work = l.k * s.out_channels * pixels / (chunks.parts * shares.parts * s.groups);
  parallel_for(outer * shares.parts, std::max<std::int64_t>(1, 100000 / std::max<std::int64_t>(1, work)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t share = i % shares.parts;
                   const std::int64_t chunk = i / shares.parts % chunks.parts;
                   const std::int64_t group = i / shares.parts / chunks.parts % s.groups;
                   const std::int64_t image = i / shares.parts / chunks.parts / s.groups;
                   const std::int64_t first = chunks.begin(chunk);
                   const float* from =
                       x + ((image * image_blocks + group * l.channels / l.in_block) * pixels + first) * l.in_block;
                   run_pairs(j, t, image, group, shares.begin(share) * unit, std::min(l.pairs, shares.begin(share + 1) * unit),
                             {from, 0, 1, chunks.size(chunk), first});
                 }
               });
}

// Whether register tiles should extend over the ends of rows of `width` outputs. Rows of 7 make tiles of three and four pixels.
// These neither hide the latency of multiply-adds nor get weights from the second-level cache as fast as they use them, which
// costs a seventh of the time on Zen 4. (Rows of 14, in tiles of four and five, gain nothing.) Only if all tiles are wide.
bool spreads(const BlockedArguments& j, std::int64_t lines, std::int64_t width) {
  const BlockedKernels& k = *j.kernels;
  const Cuts rows(width, k.wide_pixels);
  return lines > 1 && j.layout.vectors % 2 == 0 && rows.parts * k.spread_pixels > width && 2 * width < 9 * rows.parts;
}

// How a convolution reads its windows: in place, from a copy with the padding around it, or from a copy of single pixels.
struct Windows {
  const ConvShape* s;
  std::int64_t in_block, blocks;  // of channels
  std::int64_t width, reach;      // columns that a row of outputs reads, rows that one output reads
  bool copies, gathers;
  std::int64_t row_floats;  // of what is read for a row of pixels

  Windows(const ConvShape& shape, const Layout& l) : s(&shape), in_block(l.in_block), blocks(l.blocks + (l.tail > 0 ? 1 : 0)) {
    width = cpu::reach(*s, 2);
    reach = (s->kernel[1] - 1) * s->dilation[1] + 1;
    copies = s->pad[1] != 0 || s->pad[2] != 0 || rows(s->out[1]) > s->in[1] || width > s->in[2];
    gathers = !copies && s->kernel[1] == 1 && s->kernel[2] == 1;  // hence strided
    row_floats = blocks * in_block * (gathers ? s->out[2] : (copies ? width : s->in[2]));
  }
  std::int64_t rows(std::int64_t outputs) const { return (outputs - 1) * s->stride[1] + reach; }
  // Rows of outputs in bands whose input stays in the cache.
  Cuts bands() const {
    const std::int64_t fit = gathers ? kInputFloats / row_floats : (kInputFloats / row_floats - reach) / s->stride[1] + 1;
    return {s->out[1], std::clamp<std::int64_t>(fit, std::min<std::int64_t>(s->out[1], 4), s->out[1])};
  }
  std::int64_t scratch_floats(std::int64_t outputs) const {
    if (gathers) return outputs * row_floats;
    return copies ? rows(outputs) * row_floats : 0;
  }
  // Copies what `outputs` rows from y0 on read, if not in place. `looks`: also returns whether it is tame.
  bool copy(const float* plane, std::int64_t y0, std::int64_t outputs, bool looks, float* out) const {
    const auto& is_tame = *blocked_joined_kernels().tame;
    if (gathers) {
      copy_strided_pixels(*s, in_block, blocks, plane, y0, outputs, out);
      return !looks || is_tame(out, scratch_floats(outputs));
    }
    if (copies) return copy_padded(*s, in_block, blocks, plane, y0 * s->stride[1] - s->pad[1], rows(outputs), width, looks, out);
    const std::int64_t row = s->in[2] * in_block;
    for (std::int64_t b = 0; looks && b < blocks; ++b) {
      if (!is_tame(plane + (b * s->in[1] + y0 * s->stride[1]) * row, rows(outputs) * row)) return false;
    }
    return true;
  }
};

// A band of `lines` rows of outputs from y0 on, in pairs [pair0, pair1) of output vectors. plane: the group's input; copied: the
// result of Windows::copy(). `places` is scratch.
void run_band(const BlockedArguments& j, const Windows& w, const float* plane, const float* copied, std::int64_t image,
              std::int64_t group, std::int64_t y0, std::int64_t lines, std::int64_t pair0, std::int64_t pair1,
              std::vector<std::int64_t>& places) {
  const ConvShape& s = *j.s;
  const Layout& l = j.layout;
  BlockedTile t;
  t.lo = j.bounds.lo;
  t.hi = j.bounds.hi;
  t.blocks = l.blocks;
  t.tail_run = l.tail;
  if (w.gathers) {
    const std::int64_t pixels = lines * s.out[2];
    t.pixel_step = t.run = l.in_block;
    t.block_step = pixels * l.in_block;
    t.tail_taps = 1;
    return run_pairs(j, t, image, group, pair0, pair1, {copied, 0, 1, pixels, y0 * s.out[2]});
  }
  const std::int64_t from_width = w.copies ? w.width : s.in[2], from_rows = w.copies ? w.rows(lines) : s.in[1];
  const float* const from = w.copies ? copied : plane + y0 * s.stride[1] * s.in[2] * l.in_block;
  t.pixel_step = s.stride[2] * l.in_block;
  t.block_step = from_rows * from_width * l.in_block;
  t.row_step = s.dilation[1] * from_width * l.in_block;
  t.tap_step = s.dilation[2] * l.in_block;
  t.rows = s.kernel[1];
  const bool dense = s.dilation[2] == 1;
  t.taps = dense ? 1 : s.kernel[2];
  t.run = dense ? s.kernel[2] * l.in_block : l.in_block;
  t.tail_taps = s.kernel[2];
  const std::int64_t line_step = s.stride[1] * from_width * l.in_block;
  if (!spreads(j, lines, s.out[2])) {
    return run_pairs(j, t, image, group, pair0, pair1, {from, line_step, lines, s.out[2], y0 * s.out[2]});
  }
  places.clear();
  for (std::int64_t r = 0; r < lines; ++r) {
    for (std::int64_t o = 0; o < s.out[2]; ++o) places.push_back(r * line_step + o * t.pixel_step);
  }
  run_pairs(j, t, image, group, pair0, pair1, {from, 0, 1, lines * s.out[2], y0 * s.out[2], places.data()});
}

void run_windows(const BlockedArguments& j, const float* x) {
  const ConvShape& s = *j.s;
  const Layout& l = j.layout;
  const Windows w(s, l);
  const Cuts bands = w.bands();
  const std::int64_t outer = s.batch * s.groups * bands.parts;
  const Cuts shares = share_pairs(j, outer);
  const std::int64_t unit = std::max<std::int64_t>(1, j.kernels->block / (2 * l.lanes));
  const std::int64_t image_blocks = blocks_between_images(s, l.in_block);
  parallel_for(outer * shares.parts, 1, [&](std::int64_t begin, std::int64_t end) {
    float* const scratch = thread_scratch(2, static_cast<std::size_t>(w.scratch_floats(bands.size(0))));
    std::int64_t copied = -1;
    bool skips = false;
    std::vector<std::int64_t> places;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t share = i % shares.parts, place = i / shares.parts;
      const std::int64_t band = place % bands.parts;
      const std::int64_t group = place / bands.parts % s.groups;
      const std::int64_t image = place / bands.parts / s.groups;
      const std::int64_t y0 = bands.begin(band), lines = bands.size(band);
      const float* const plane = x + (image * image_blocks + group * l.channels / l.in_block) * s.in[1] * s.in[2] * l.in_block;
      if (copied != place) {
        skips = !w.copy(plane, y0, lines, j.left_out != nullptr, scratch);
        if (skips) j.left_out->add({image, group, y0, y0 + lines, 0, s.out[2]});
      }
      copied = place;
      if (skips) continue;
      run_band(j, w, plane, scratch, image, group, y0, lines, shares.begin(share) * unit,
               std::min(l.pairs, shares.begin(share + 1) * unit), places);
    }
  });
}

// Some rows of a region.
struct RegionBand {
  Region region;
  Span rows;
};

std::vector<RegionBand> bands_of(const ConvShape& s, const Layout& l, const std::vector<Region>& regions) {
  std::vector<RegionBand> bands;
  const std::int64_t channels = l.blocks * l.in_block + l.tail;
  for (const Region& r : regions) {
    const std::int64_t columns = std::min(s.in[2], r.columns.size() * std::max<std::int64_t>(1, r.column_taps.size()));
    const std::int64_t row = channels * columns * std::max<std::int64_t>(1, r.row_taps.size()), height = r.rows.size();
    const Cuts cuts(height, std::clamp<std::int64_t>(kInputFloats / row, std::min<std::int64_t>(height, 4), height));
    for (std::int64_t i = 0; i < cuts.parts; ++i) {
      bands.push_back({r, {r.rows.begin + cuts.begin(i), r.rows.begin + cuts.begin(i + 1)}});
    }
  }
  return bands;
}

// Reads the taps inside the input in place. plane: the group's input.
void run_region(const BlockedArguments& j, const float* plane, std::int64_t image, std::int64_t group, const RegionBand& band,
                std::int64_t pair0, std::int64_t pair1) {
  const ConvShape& s = *j.s;
  const Layout& l = j.layout;
  const Region& r = band.region;
  const std::int64_t first_tap = r.row_taps.begin * s.kernel[2] + r.column_taps.begin, columns = r.column_taps.size();
  BlockedTile t;
  t.lo = j.bounds.lo;
  t.hi = j.bounds.hi;
  t.pixel_step = s.stride[2] * l.in_block;
  t.block_step = s.in[1] * s.in[2] * l.in_block;
  t.row_step = s.dilation[1] * s.in[2] * l.in_block;
  t.tap_step = s.dilation[2] * l.in_block;
  t.blocks = l.blocks;
  t.rows = r.row_taps.size();
  const bool dense = s.dilation[2] == 1 || columns == 1;
  t.taps = dense ? 1 : columns;
  t.run = dense ? columns * l.in_block : l.in_block;
  t.tail_taps = columns;
  t.tail_run = l.tail;
  t.tap_weights = l.in_block;
  t.skip_before = first_tap;
  t.skip_row = s.kernel[2] - columns;
  t.skip_after = (s.kernel[1] - t.rows) * s.kernel[2] - first_tap;
  if (r.taps() == 0) t.blocks = t.tail_run = 0;
  const std::int64_t x0 = r.columns.begin * s.stride[2] - s.pad[2] + r.column_taps.begin * s.dilation[2];
  const std::int64_t y0 = band.rows.begin * s.stride[1] - s.pad[1] + r.row_taps.begin * s.dilation[1];
  const float* const from = r.taps() == 0 ? plane : plane + (y0 * s.in[2] + x0) * l.in_block;
  Lines lines{from, s.stride[1] * s.in[2] * l.in_block, band.rows.size(), r.columns.size(),
              band.rows.begin * s.out[2] + r.columns.begin};
  lines.out_step = s.out[2];
  // Whole rows of input and output follow each other.
  if (lines.width == s.out[2] && lines.line_step == lines.width * t.pixel_step) {
    lines.width *= lines.lines;
    lines.lines = 1;
  }
  run_pairs(j, t, image, group, pair0, pair1, lines);
}

void run_regions(const BlockedArguments& j, const std::vector<Region>& regions, const float* x) {
  const ConvShape& s = *j.s;
  const Layout& l = j.layout;
  const std::vector<RegionBand> all = bands_of(s, l, regions);
  const auto bands = static_cast<std::int64_t>(all.size());
  const Cuts shares = share_pairs(j, s.batch * s.groups * bands);
  const std::int64_t unit = std::max<std::int64_t>(1, j.kernels->block / (2 * l.lanes));
  const std::int64_t image_blocks = blocks_between_images(s, l.in_block);
  parallel_for(s.batch * s.groups * bands * shares.parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t share = i % shares.parts, place = i / shares.parts;
      const std::int64_t band = place % bands, group = place / bands % s.groups, image = place / bands / s.groups;
      const float* const plane = x + (image * image_blocks + group * l.channels / l.in_block) * s.in[1] * s.in[2] * l.in_block;
      run_region(j, plane, image, group, all[to_size(band)], shares.begin(share) * unit,
                 std::min(l.pairs, shares.begin(share + 1) * unit));
    }
  });
}

// How weights are packed for tiles of t x t outputs; t = 0: not for tiles.
struct WinogradForm {
  int t;
  bool lean;
};

WinogradForm winograd_form(BlockedConv algorithm) {
  switch (algorithm) {
    case BlockedConv::winograd2: return {2, false};
    case BlockedConv::winograd2_lean: return {2, true};
    case BlockedConv::winograd4: return {4, false};
    case BlockedConv::winograd4_lean:
    case BlockedConv::strided: return {4, true};
    default: return {0, false};
  }
}

}  // namespace

bool conv_blocked_supports(BlockedConv algorithm, const ConvShape& s) {
  if (s.in[0] != 1 || s.out[0] != 1 || s.kernel[0] != 1 || s.pad[0] != 0) return false;
  switch (algorithm) {
    case BlockedConv::plain: return s.groups == 1;
    case BlockedConv::depthwise: return s.in_channels == s.groups && s.out_channels == s.groups;
    case BlockedConv::winograd2:
    case BlockedConv::winograd4:
    case BlockedConv::winograd2_lean:
    case BlockedConv::winograd4_lean: return blocked_winograd_supports(s);
    case BlockedConv::strided: return blocked_strided_supports(s);
    case BlockedConv::listed: return pointwise_window(s) && s.shuffle > 0 && s.in_channels % s.shuffle == 0;
    case BlockedConv::direct: return whole_groups(s);
  }
  return false;
}

BlockedConv conv_blocked_choose(const ConvShape& of) {
  const bool dilated = is_dilated(of) && blocked_winograd_supports(of);
  const ConvShape s = dilated ? phases_of(of) : of;
  if (s.shuffle != 1) return BlockedConv::listed;
  if (s.groups > 1 && conv_blocked_supports(BlockedConv::depthwise, s)) return BlockedConv::depthwise;
  if (!conv_blocked_supports(BlockedConv::direct, s)) return BlockedConv::listed;
  // Products per pair of channels, in whole register tiles.
  const double products = 9.0 * static_cast<double>(s.batch * s.out[1] * s.out[2]);
  if (blocked_strided_supports(s)) {
    return blocked_strided_cost(s) < 0.9 * products ? BlockedConv::strided : BlockedConv::direct;
  }
  const std::int64_t in = s.in_channels / s.groups, out = s.out_channels / s.groups;
  if (!blocked_winograd_supports(s) || in < 16 || out < 16) return BlockedConv::direct;
  // Weights that do not stay in the caches cost at least the time to read them: at 12 GB/s per core, as much as 15 products each.
  const auto with_weights = [&](double weights, double cost) {
    const double bytes = weights * 4.0 * static_cast<double>(s.groups * in * out);
    return bytes > 2e6 ? std::max(cost, 15.0 * weights) : cost;
  };
  const double plain = with_weights(9.0, direct_products(of));
  const double two = with_weights(16.0, blocked_winograd_cost(2, s)), four = with_weights(36.0, blocked_winograd_cost(4, s));
  if (std::min(two, four) > 0.9 * plain) return BlockedConv::direct;
  if (two < four) return BlockedConv::winograd2;
  // In this form, weights take four times their size. If all tiles of the image share one transform, lean weights save that
  // memory and cost 3 to 23 % of the convolution's time, more with fewer tiles. (Whole networks with one thread: ResNet-50 saves
  // 33 MB for 1 %, VGG-19 197 MB for 3 %.) That is worth it if much memory is saved for many tiles.
  constexpr double kMuch = 9e6 * 16;
  const double bytes = 36.0 * 4.0 * static_cast<double>(s.groups * in * out);
  const std::int64_t tiles = s.batch * up_div(s.out[1], 4) * up_div(s.out[2], 4);
  return bytes * static_cast<double>(tiles) > kMuch && blocked_winograd_once(4, s) ? BlockedConv::winograd4_lean
                                                                                   : BlockedConv::winograd4;
}

std::size_t conv_blocked_packed_bytes(BlockedConv algorithm, const ConvShape& s) {
  const BlockedKernels& k = blocked_kernels();
  if (algorithm == BlockedConv::depthwise) {
    return static_cast<std::size_t>(up_div(s.out_channels, k.block) * k.block * (s.kernel[1] * s.kernel[2] + 1)) * sizeof(float);
  }
  if (const auto [t, lean] = winograd_form(algorithm); t != 0) return blocked_winograd_floats(t, lean, s) * sizeof(float);
  if (algorithm == BlockedConv::listed) return blocked_listed_floats(s) * sizeof(float);
  const Layout l(s, algorithm == BlockedConv::plain, k);
  return static_cast<std::size_t>(s.groups * (l.group_floats() + l.vectors * l.lanes)) * sizeof(float);
}

void conv_blocked_pack(BlockedConv algorithm, const ConvShape& s, const void* weights, const float* bias, float* packed) {
  const BlockedKernels& k = blocked_kernels();
  if (algorithm == BlockedConv::depthwise) {
    const std::int64_t taps = s.kernel[1] * s.kernel[2];
    const std::int64_t padded = up_div(s.out_channels, k.block) * k.block;
    for (std::int64_t c = 0; c < padded; ++c) {
      float* to = packed + c / k.block * taps * k.block + c % k.block;
      for (std::int64_t i = 0; i < taps; ++i) to[i * k.block] = c < s.out_channels ? read_f32(weights, c * taps + i) : 0.0F;
    }
    return pack_bias(bias, s.out_channels, padded, packed + padded * taps);
  }
  if (const auto [t, lean] = winograd_form(algorithm); t != 0) return blocked_winograd_pack(t, lean, s, weights, bias, packed);
  if (algorithm == BlockedConv::listed) return blocked_listed_pack(s, weights, bias, packed);
  const Layout l(s, algorithm == BlockedConv::plain, k);
  pack_direct(s, l, weights, packed);
  pack_bias(bias, s.out_channels, s.groups * l.vectors * l.lanes, packed + s.groups * l.group_floats());
}

std::size_t conv_blocked_workspace_bytes(BlockedConv algorithm, const ConvShape& s) {
  if (winograd_form(algorithm).t == 0 || !is_dilated(s)) return 0;
  return phases_workspace_floats(s) * sizeof(float);
}

void conv_blocked_f32(BlockedConv algorithm, const ConvShape& s, const float* x, const float* packed, const float* residual,
                      const UnarySpec& act, float* y, void* workspace) {
  if (s.out[1] <= 0 || s.out[2] <= 0 || s.batch <= 0) return;
  if (algorithm == BlockedConv::depthwise) return conv_blocked_depthwise(s, x, packed, residual, act, y);
  if (algorithm == BlockedConv::strided) return conv_blocked_strided(s, x, packed, residual, act, y);
  if (const auto [t, lean] = winograd_form(algorithm); t != 0) {
    if (is_dilated(s)) {
      return conv_blocked_winograd_phases(t, lean, s, x, packed, residual, act, y, static_cast<float*>(workspace));
    }
    return conv_blocked_winograd(t, lean, s, x, packed, residual, act, y);
  }
  if (algorithm == BlockedConv::listed) return conv_blocked_listed(s, x, packed, residual, act, y);
  const BlockedKernels& k = blocked_kernels();
  const Layout l(s, algorithm == BlockedConv::plain, k);
  LeftOut left;
  const bool joined = s.joined > 1;
  const BlockedArguments job{&k,       &s,  l,           packed, packed + s.groups * l.group_floats(),
                             residual, act, Bounds(act), y,      joined ? &left : nullptr};
  if (pointwise(s) && !joined) return run_pointwise(job, x);
  if (const std::vector<Region> regions = regions_worth_it(s); !regions.empty()) return run_regions(job, regions, x);
  run_windows(job, x);
  if (left.parts().empty()) return;
  compute_left_out(s, left, {x, packed, l.group_floats(), residual, y},
                   [&](const ConvShape& one, const float* from, const float* weights, const float* to_add, float* to) {
                     conv_blocked_f32(algorithm, one, from, weights, to_add, act, to);
                   });
}

}  // namespace sdx::cpu
