#include "kernels/cpu/conv/winograd/uneven.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/winograd/winograd_simd.h"
#include "kernels/cpu/simd/cuts.h"

namespace sdx::cpu {
namespace {

constexpr float kMostUneven = 8.0F * 8.0F;  // of squares
constexpr std::int64_t kTileRowsTogether = 8;

// The input positions that outputs [first, first + count) of an axis read, without padding.
struct Span {
  std::int64_t begin, end;
  Span(const ConvShape& s, int axis, std::int64_t first, std::int64_t count)
      : begin(std::clamp<std::int64_t>(first * s.stride[axis] - s.pad[axis], 0, s.in[axis])),
        end(std::clamp<std::int64_t>((first + count - 1) * s.stride[axis] + 3 - s.pad[axis], 0, s.in[axis])) {}
};

// Otherwise, a window may consist of padding.
bool windows_hold_pixels(const ConvShape& s, int axis) {
  return s.pad[axis] <= 2 && (s.out[axis] - 1) * s.stride[axis] - s.pad[axis] < s.in[axis];
}

// The least and the largest of some rows' pixels, per column; beyond both ends there are none.
struct Columns {
  static constexpr std::int64_t kBefore = 2, kBeyond = 64;

  const WinogradKernels& kernels = winograd_kernels();
  std::int64_t lanes = kernels.lanes, width;
  std::vector<float> least, most;

  explicit Columns(std::int64_t columns)
      : width(columns), least(to_size(kBefore + width + kBeyond), std::numeric_limits<float>::infinity()), most(least.size()) {}
  // Returns whether all of them are finite.
  bool set(const float* squares, std::int64_t rows) {
    return kernels.extremes(squares, rows, width, least.data() + kBefore, most.data() + kBefore);
  }
  // Whether none of `lanes` windows is uneven. Their first columns begin at `first`, which is one of the pixels or at most
  // kBefore before them.
  bool even(std::int64_t first, int window) const {
    return kernels.even(least.data() + kBefore + first, most.data() + kBefore + first, window, kMostUneven);
  }
};

// One image.
struct Image {
  const ConvShape& s;
  const float* squares;

  // The sum of the pixels in a window; 0 if it consists of padding.
  float window(std::int64_t y, std::int64_t x) const {
    const Span rows(s, 1, y, 1), columns(s, 2, x, 1);
    float sum = 0.0F;
    for (std::int64_t r = rows.begin; r < rows.end; ++r) {
      for (std::int64_t c = columns.begin; c < columns.end; ++c) sum += squares[r * s.in[2] + c];
    }
    return sum;
  }

  // `most`: the largest pixel of the tile, which is finite.
  bool has_small_window(int t, std::int64_t y0, std::int64_t x0, float most) const {
    for (std::int64_t y = y0; y < std::min(s.out[1], y0 + t); ++y) {
      for (std::int64_t x = x0; x < std::min(s.out[2], x0 + t); ++x) {
        if (!(most <= kMostUneven * window(y, x))) return true;
      }
    }
    return false;
  }

  // The pixels that outputs of a tile read, or none of them.
  bool is_uneven(int t, std::int64_t y0, std::int64_t x0, bool all_finite) const {
    const Span rows(s, 1, y0, std::min<std::int64_t>(t, s.out[1] - y0)),
        columns(s, 2, x0, std::min<std::int64_t>(t, s.out[2] - x0));
    float low = std::numeric_limits<float>::infinity(), high = 0.0F;
    for (std::int64_t r = rows.begin; r < rows.end; ++r) {
      for (std::int64_t c = columns.begin; c < columns.end; ++c) {
        const float v = squares[r * s.in[2] + c];
        if (!all_finite && !std::isfinite(v)) return true;
        low = std::min(low, v);
        high = std::max(high, v);
      }
    }
    const bool all_hold_pixels = windows_hold_pixels(s, 1) && windows_hold_pixels(s, 2);
    return high > 0.0F && !(all_hold_pixels && high <= kMostUneven * low) && has_small_window(t, y0, x0, high);
  }

  bool tile_row(int t, std::int64_t y0, Columns& columns, std::uint8_t* uneven) const {
    const Span rows(s, 1, y0, std::min<std::int64_t>(t, s.out[1] - y0));
    const std::int64_t tiles = up_div(s.out[2], t), together = std::max<std::int64_t>(1, columns.lanes / step(t));
    const bool plain = rows.end > rows.begin && windows_hold_pixels(s, 1) && windows_hold_pixels(s, 2);
    const bool finite = plain && columns.set(squares + rows.begin * s.in[2], rows.end - rows.begin);
    std::fill_n(uneven, tiles, std::uint8_t{0});
    bool any = false;
    for (std::int64_t i = 0; i < tiles; i += together) {
      if (finite && columns.even(i * step(t) - s.pad[2], static_cast<int>(step(t) - s.stride[2] + 3))) continue;
      for (std::int64_t n = i; n < std::min(tiles, i + together); ++n) {
        uneven[n] = is_uneven(t, y0, n * t, finite) ? 1 : 0;
        any = any || uneven[n] != 0;
      }
    }
    return any;
  }

  std::int64_t step(int t) const { return t * s.stride[2]; }  // columns from tile to tile
};

}  // namespace

bool find_uneven_tiles(int t, const ConvShape& s, const PixelSquares& squares, std::uint8_t* uneven) {
  const std::int64_t tiles_y = up_div(s.out[1], t), tiles_x = up_div(s.out[2], t);
  std::atomic<bool> any{false};
  parallel_for(squares.images * tiles_y, kTileRowsTogether, [&](std::int64_t begin, std::int64_t end) {
    Columns columns(s.in[2]);
    for (std::int64_t i = begin; i < end; ++i) {
      const Image image{s, squares.data + i / tiles_y * s.in[1] * s.in[2]};
      if (image.tile_row(t, i % tiles_y * t, columns, uneven + i * tiles_x)) any = true;
    }
  });
  return any;
}

}  // namespace sdx::cpu
