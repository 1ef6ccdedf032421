#pragma once
// How a convolution's work is split, and its kernels' arguments; internal to this folder.

#include <algorithm>
#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/blocked/blocked_simd.h"
#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/elementwise/bounds.h"
#include "kernels/cpu/gemm/gemm_simd.h"
#include "kernels/cpu/simd/cuts.h"

namespace sdx::cpu {

// Whether groups begin and end with blocks of channels.
inline bool whole_groups(const ConvShape& s) {
  const std::int64_t block = blocked_kernels().block;
  return s.groups == 1 || (s.in_channels / s.groups % block == 0 && s.out_channels / s.groups % block == 0);
}

// Blocks of channels from one image of x to the next.
inline std::int64_t blocks_between_images(const ConvShape& s, std::int64_t block) {
  return s.image_blocks > 0 ? s.image_blocks : up_div(s.in_channels, block);
}

// Whether threads split the pixels of a plane rather than the channels. Adjacent layers must do the same: a thread then finds
// what it wrote in its core's cache, except for border rows. From 14 x 14 on; below that, register tiles would not fill.
inline bool shares_pixels(std::int64_t plane) { return plane >= 196 && current_pool().threads() > 1; }

// Rows of the `each` planes of `images` images, in tasks of at most `most` rows: by planes, or by rows if threads split these.
struct RowTasks {
  std::int64_t planes, bands, rows;
  bool rows_first;

  RowTasks(std::int64_t images, std::int64_t each, std::int64_t rows_in, std::int64_t columns, std::int64_t most)
      : planes(images * each), bands(up_div(rows_in, most)), rows(rows_in) {
    const std::int64_t threads = current_pool().threads();
    rows_first = images < threads && shares_pixels(rows_in * columns);
    if (rows_first) bands = std::min(rows, up_div(bands, threads) * threads);
  }
  std::int64_t size() const { return planes * bands; }
  std::int64_t plane(std::int64_t task) const { return rows_first ? task % planes : task / bands; }
  // First row of the task, and its end, where the next band begins.
  std::int64_t begin(std::int64_t task) const { return rows * band(task) / bands; }
  std::int64_t end(std::int64_t task) const { return rows * (band(task) + 1) / bands; }

 private:
  std::int64_t band(std::int64_t task) const { return rows_first ? task / planes : task % bands; }
};

// The tiles that use the same weights together prefetch the next ones, which follow in memory: otherwise the first of the
// next tiles would wait for memory, which the other tiles leave idle.
struct Ahead {
  const float* next;
  std::int64_t lines;   // of 64 bytes
  std::int64_t blocks;  // of channels in a tile
  std::int64_t each;    // lines for each block

  Ahead(const float* weights, std::int64_t floats, std::int64_t tile_blocks, std::int64_t tiles)
      : next(weights + floats),
        lines(up_div(floats, 16)),
        blocks(tile_blocks),
        each(up_div(lines, std::max<std::int64_t>(1, blocks * tiles))) {}

  // Sets what tile number `tile` and those after it prefetch.
  template <class Tile>
  void set(Tile& t, std::int64_t tile) const {
    t.ahead = next + std::min(lines, tile * each * blocks) * 16;
    t.ahead_end = next + lines * 16;
    t.ahead_lines = each;
  }
};

// Runs of tiles of equal size: the first total % parts of a cut have one element more.
template <class CutsType, class F>
void equal_tiles(const CutsType& cuts, F&& run) {
  const std::int64_t longer = cuts.parts > 0 ? cuts.total % cuts.parts : 0;
  if (longer > 0) run(std::int64_t{0}, longer);
  if (cuts.parts > longer) run(longer, cuts.parts - longer);
}

// The bias, padded with zeros.
inline void pack_bias(const float* bias, std::int64_t channels, std::int64_t padded, float* out) {
  std::fill(out, out + padded, 0.0F);
  if (bias != nullptr) std::copy(bias, bias + channels, out);
}

// `count` filters of `floats` weights each, from filter `first` on, as [weight][two vectors of filters]; the rest is 0.
inline void pack_filter_panel(const void* weights, std::int64_t first, std::int64_t count, std::int64_t floats, float* out) {
  gemm_kernels().pack_b_panels(static_cast<const char*>(weights) + first * floats * 4, 1, floats, floats, count, 1.0F, out);
}

}  // namespace sdx::cpu
