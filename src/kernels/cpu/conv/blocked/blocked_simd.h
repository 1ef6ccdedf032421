#pragma once
// The per-target inner kernels of blocked.h; internal to this folder.

#include <cstdint>

namespace sdx::cpu {

// Register tiles: `pixels` neighbouring output pixels times one or two vectors of output channels. The input of pixel p is at
// x + p * pixel_step; from there the taps are [blocks][rows][taps][run] with the run contiguous, and [rows][tail_taps][tail_run]
// of the last, partly filled block. The weights lie in that order, a vector or two for each element.
struct BlockedTile {
  const float* x = nullptr;
  std::int64_t pixel_step = 0, block_step = 0, row_step = 0, tap_step = 0;
  std::int64_t blocks = 0, rows = 1, taps = 1, run = 0;
  std::int64_t tail_taps = 0, tail_run = 0;
  const float* w = nullptr;
  const float* bias = nullptr;    // of these vectors of channels
  float* y[2] = {};               // of each vector's first pixel; the next one is a block further
  const float* residual[2] = {};  // null: none
  float lo = 0, hi = 0;           // bounds of the result
  std::int64_t pixels = 0;        // 1 .. wide_pixels or narrow_pixels
  bool wide = true;               // two vectors
  // Not null: `run` single elements of one tap instead, this far behind x each.
  const std::int64_t* list = nullptr;
  // Of a tile with `list` that is not wide: so many such lists follow each other, with weights of their own. Results of the first
  // are in the lanes below `lane`, those of each further one in the next `lane_step`, of the last in all that follow.
  std::int64_t parts = 1, lane = 0, lane_step = 0;
  // Not null: pixel p lies so far behind x instead, where the next tile's pixels follow. Not with `list`, and for wide tiles of
  // at most spread_pixels alone.
  const std::int64_t* places = nullptr;
  std::int64_t tiles = 1;  // such tiles, side by side
  // Weights that later tiles read, so many cache lines for each block of channels: see Ahead in blocked_internal.h.
  const float* ahead = nullptr;
  const float* ahead_end = nullptr;
  std::int64_t ahead_lines = 0;
};

// Rows of outputs of a depthwise convolution with a square window, in one block of channels.
struct DepthwiseBand {
  const float* x = nullptr;  // the plane [in_rows][in_columns][c]
  std::int64_t in_rows = 0, in_columns = 0;
  std::int64_t kernel = 3;  // 3, 5 or 7
  std::int64_t stride = 1;  // 1 or 2
  std::int64_t pad_row = 0, pad_column = 0;
  std::int64_t first = 0, last = 0;  // rows of outputs
  std::int64_t columns = 0;
  std::int64_t inner_begin = 0, inner_end = 0;  // columns whose windows lie inside the rows
  const float* w = nullptr;                     // [kernel][kernel][c]
  const float* bias = nullptr;
  float lo = 0, hi = 0;
  float* y = nullptr;  // of row `first`
};

// One output from any window: taps [rows][columns] at x + i * row_step + j * tap_step, weights at w + i * w_row + j * c.
struct DepthwisePixel {
  const float* x = nullptr;
  std::int64_t rows = 0, columns = 0, row_step = 0, tap_step = 0;
  const float* w = nullptr;
  std::int64_t w_row = 0;
  const float* bias = nullptr;
  float lo = 0, hi = 0;
  float* y = nullptr;
};

// A tile of a 3x3 convolution in one block of channels.
struct ImageTile {
  std::int64_t rows = 0, columns = 0;  // of outputs that are wanted, each 1 .. t
  // What these see of the input, rows row_step apart: rows [row0, row1) and columns [column0, column1) exist, the rest is 0.
  const float* x = nullptr;
  std::int64_t row_step = 0, row0 = 0, row1 = 0, column0 = 0, column1 = 0;
  // y: rows y_step apart.
  const float* bias = nullptr;
  const float* residual = nullptr;  // like y; null: none
  float lo = 0, hi = 0;
  float* y = nullptr;
  std::int64_t y_step = 0;
};

// Of Winograd's F(t x t, 3 x 3), with (rows + 2) x (columns + 2) inputs. Fewer outputs take the rows 0 .. rows and t + 1 of the
// transformed elements, and columns likewise; the others are neither set nor read.
struct WinogradTile : ImageTile {
  // The transformed elements, e_step apart: result of input(), what output() takes.
  float* v = nullptr;
  std::int64_t e_step = 0;
};

// Local response normalisation across channels.
struct BlockedLrn {
  const float* x = nullptr;
  float* y = nullptr;
  std::int64_t channels = 0, plane = 0, pixels = 0;
  std::int64_t size = 0;
  float alpha = 0, beta = 0, bias = 0;  // alpha: of one square
};

constexpr std::int64_t kMeanPixels = 64;

constexpr std::int64_t kLrnPixels = 16;  // their squares stay in the first-level cache
// Floats for the squares of kLrnPixels pixels with the window's zeros around them.
constexpr std::int64_t lrn_scratch(std::int64_t padded_channels, std::int64_t size) {
  return kLrnPixels * (padded_channels + size) + 64;
}

// Filters whose weights are transformed together: in all their elements they fill a third of a second-level cache. The gap behind
// keeps elements from falling into the same few sets of the first-level cache.
constexpr std::int64_t kWinogradFilters = 2048;
constexpr std::int64_t kWinogradStep = kWinogradFilters + 16;

struct BlockedKernels {
  int lanes;
  int block;
  int wide_pixels;
  int narrow_pixels;
  int spread_pixels;  // of tiles with places; as many as there are registers for
  void (*tile)(const BlockedTile& t);
  void (*depthwise_band)(const DepthwiseBand& b);
  void (*depthwise_pixel)(const DepthwisePixel& p);
  // `count` windows of one size, `step` floats apart: the largest element (NaN wins), or the sum times `factor`.
  void (*window_max)(const float* x, std::int64_t step, std::int64_t rows, std::int64_t columns, std::int64_t row_step,
                     std::int64_t tap_step, float* y, std::int64_t count);
  void (*window_sum)(const float* x, std::int64_t step, std::int64_t rows, std::int64_t columns, std::int64_t row_step,
                     std::int64_t tap_step, float factor, float* y, std::int64_t count);
  void (*scale)(const float* x, const float* s, float* y, std::int64_t pixels);
  void (*shift)(const float* x, const float* s, float* y, std::int64_t pixels);
  // y = x * s + b within bounds, s and b per channel.
  void (*affine)(const float* x, const float* s, const float* b, float lo, float hi, float* y, std::int64_t pixels);
  // y = x + residual within bounds, over n floats; y may be either.
  void (*add_clip)(const float* x, const float* residual, float lo, float hi, float* y, std::int64_t n);
  void (*winograd_input)(int t, const WinogradTile& tile);
  void (*winograd_output)(int t, const WinogradTile& tile);
  // Normalises `pixels` (at most kLrnPixels) of all blocks of channels, which are `plane` floats apart. `squares`: see
  // lrn_scratch().
  void (*lrn)(const BlockedLrn& n, float* squares);
  // G g G^T of filters whose nine taps lie in g as [channel][tap][width], width being one or two vectors; element e goes to
  // out[e * kWinogradStep + channel * width]. channels * width <= kWinogradFilters.
  void (*winograd_weights)(int t, const float* g, std::int64_t channels, std::int64_t width, float* out);
  // y[c] = factor * the sum over `pixels`, in pieces of kMeanPixels whose sums are then added.
  void (*mean)(const float* x, float factor, float* y, std::int64_t pixels);
  // Whether all of x[0, n) is below 2^100: sums of such, and their products with 0, are numbers. n: whole blocks.
  bool (*tame)(const float* x, std::int64_t n);
  bool (*copy_tame)(const float* x, std::int64_t n, float* to);  // and copies them
};

const BlockedKernels& blocked_kernels();

}  // namespace sdx::cpu
