#include "kernels/cpu/conv/training/conv_winograd_grad.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/blocked/blocked_layout.h"
#include "kernels/cpu/conv/blocked/tiled/blocked_direct_simd.h"
#include "kernels/cpu/conv/blocked/tiled/blocked_winograd_simd.h"
#include "kernels/cpu/conv/training/conv_winograd_grad_simd.h"
#include "kernels/cpu/conv/winograd/uneven.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kTile = 4, kLeastChannels = 16;
constexpr std::int64_t kTransformed = 512 * 1024;   // floats per pass
constexpr std::int64_t kLeastTiles = 128;           // per pass, so that sums are seldom read and written again
constexpr std::int64_t kMostTransformed = 4 << 20;  // floats of one image

struct WinogradPass {
  const ConvWinogradGrad& p;
  const WinogradGradKernels& k;
  std::int64_t block, tiles, images;  // of this pass
  bool first, last;
  float *x, *dy;            // in blocks
  float *inputs, *outputs;  // transformed: [block or panel][element][tile][block or width]
  float* sums;              // [block][panel][element][block][width]; null if one pass does all
  float* dw;
  const std::uint8_t* direct = nullptr;  // tiles of this pass that are not transformed; null: none
};

// Calls fn(image, y, x, tile) for tiles [begin, end).
template <class F>
void for_tiles(const WinogradPass& j, std::int64_t begin, std::int64_t end, F&& fn) {
  const std::int64_t each = j.p.rows * j.p.columns;
  for (std::int64_t t = begin; t < end; ++t) fn(t / each, t % each / j.p.columns * kTile, t % j.p.columns * kTile, t);
}

bool is_direct(const WinogradPass& j, std::int64_t tile) { return j.direct != nullptr && j.direct[tile] != 0; }

// A transformed tile that adds nothing.
void clear(float* elements, std::int64_t step, std::int64_t count) {
  for (std::int64_t e = 0; e < kWinogradElements; ++e) std::fill_n(elements + e * step, count, 0.0F);
}

void transform_inputs(const WinogradPass& j, std::int64_t block, std::int64_t begin, std::int64_t end) {
  const ConvShape& s = j.p.shape;
  const auto input = blocked_winograd_kernels().input;
  WinogradTile w;
  w.rows = w.columns = kTile;
  w.row_step = s.in[2] * j.block;
  w.e_step = j.tiles * j.block;
  for_tiles(j, begin, end, [&](std::int64_t image, std::int64_t y, std::int64_t x, std::int64_t tile) {
    w.v = j.inputs + (block * kWinogradElements * j.tiles + tile) * j.block;
    if (is_direct(j, tile)) return clear(w.v, w.e_step, j.block);
    const std::int64_t iy = y - s.pad[1], ix = x - s.pad[2];
    w.row0 = std::clamp<std::int64_t>(-iy, 0, kTile + 2);
    w.row1 = std::clamp<std::int64_t>(s.in[1] - iy, 0, kTile + 2);
    w.column0 = std::clamp<std::int64_t>(-ix, 0, kTile + 2);
    w.column1 = std::clamp<std::int64_t>(s.in[2] - ix, 0, kTile + 2);
    w.x = j.x + (((image * j.p.in_blocks + block) * s.in[1] + iy) * s.in[2] + ix) * j.block;
    input(static_cast<int>(kTile), w);
  });
}

void transform_outputs(const WinogradPass& j, std::int64_t block, std::int64_t begin, std::int64_t end) {
  const ConvShape& s = j.p.shape;
  const std::int64_t width = j.k.width, panel = block * j.block / width, within = block * j.block % width;
  WinogradGradTile w;
  w.row_step = s.out[2] * j.block;
  w.e_step = j.tiles * width;
  for_tiles(j, begin, end, [&](std::int64_t image, std::int64_t y, std::int64_t x, std::int64_t tile) {
    w.m = j.outputs + (panel * kWinogradElements * j.tiles + tile) * width + within;
    if (is_direct(j, tile)) return clear(w.m, w.e_step, j.block);
    w.rows = std::min(kTile, s.out[1] - y);
    w.columns = std::min(kTile, s.out[2] - x);
    w.dy = j.dy + (((image * j.p.out_blocks + block) * s.out[1] + y) * s.out[2] + x) * j.block;
    j.k.tile(w);
  });
}

void transform(const WinogradPass& j) {
  constexpr std::int64_t kSome = 16;  // tiles per task
  const std::int64_t parts = up_div(j.tiles, kSome), of_inputs = j.p.in_blocks * parts;
  parallel_for(of_inputs + j.p.out_blocks * parts, 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const bool input = i < of_inputs;
      const std::int64_t at = input ? i : i - of_inputs, from = at % parts * kSome, to = std::min(j.tiles, from + kSome);
      input ? transform_inputs(j, at / parts, from, to) : transform_outputs(j, at / parts, from, to);
    }
  });
}

void multiply(const WinogradPass& j) {
  const ConvShape& s = j.p.shape;
  const std::int64_t width = j.k.width, each = j.block * width;
  const double work = static_cast<double>(kWinogradElements * each) * static_cast<double>(j.tiles);
  const auto grain = static_cast<std::int64_t>(std::max(1.0, 250000.0 / work));
  parallel_for(j.p.in_blocks * j.p.panels, grain, [&](std::int64_t begin, std::int64_t end) {
    float* const own = j.sums == nullptr ? thread_scratch(2, to_size(kWinogradElements * each)) : nullptr;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t block = i / j.p.panels, panel = i % j.p.panels;
      float* const sums = own != nullptr ? own : j.sums + i * kWinogradElements * each;
      for (std::int64_t e = 0; e < kWinogradElements; ++e) {
        j.k.products(j.inputs + (block * kWinogradElements + e) * j.tiles * j.block,
                     j.outputs + (panel * kWinogradElements + e) * j.tiles * width, j.tiles, !j.first, sums + e * each);
      }
      if (!j.last) continue;
      const std::int64_t c = block * j.block, m = panel * width;
      j.k.taps(sums, std::min(j.block, s.in_channels - c), std::min(width, s.out_channels - m),
               j.dw + (m * s.in_channels + c) * 9, s.in_channels * 9);
    }
  });
}

// Sums of squares over the channels of all pixels of this pass; `x` in blocks.
void square_pixels(const WinogradPass& j, const float* x, std::int64_t channels, std::int64_t pixels, float* squares) {
  constexpr std::int64_t kGrain = std::int64_t{1} << 16, kSome = 1024;  // pixels per task
  const std::int64_t parts = up_div(pixels, kSome), image = up_div(channels, j.block) * pixels * j.block;
  parallel_for(j.images * parts, std::max<std::int64_t>(1, kGrain / (channels * kSome)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t first = i % parts * kSome, n = i / parts;
                   blocked_direct_kernels().squares(x + n * image + first * j.block, pixels * j.block, channels,
                                                    std::min(kSome, pixels - first), squares + n * pixels + first);
                 }
               });
}

double sum_of(const float* x, std::int64_t n) {
  constexpr std::int64_t kParts = 16;  // sums that do not wait for each other
  double parts[kParts] = {}, sum = 0;
  std::int64_t i = 0;
  for (; i + kParts <= n; i += kParts) {
    for (std::int64_t k = 0; k < kParts; ++k) parts[k] += static_cast<double>(x[i + k]);
  }
  for (; i < n; ++i) sum += static_cast<double>(x[i]);
  for (const double part : parts) sum += part;
  return sum;
}

// Tiles whose result's gradients are not finite, or at the border, where some taps read nothing, far above all others. (Elsewhere
// large ones do no harm: taps of an even input are as large as their tile's.)
bool mark_gradients(const WinogradPass& j, const float* squares, std::uint8_t* direct) {
  const ConvShape& s = j.p.shape;
  const std::int64_t pixels = volume(s.out), all = j.images * pixels;
  constexpr double kMostUneven = 8.0 * 8.0;  // of squares
  const double total = sum_of(squares, all);
  bool any = false;
  for_tiles(j, 0, j.tiles, [&](std::int64_t image, std::int64_t y, std::int64_t x, std::int64_t tile) {
    const std::int64_t rows = std::min(kTile, s.out[1] - y), columns = std::min(kTile, s.out[2] - x);
    const bool inside =
        y >= s.pad[1] && x >= s.pad[2] && y + rows + 2 - s.pad[1] <= s.in[1] && x + columns + 2 - s.pad[2] <= s.in[2];
    if (inside && std::isfinite(total)) return;
    double own = 0, most = 0;
    for (std::int64_t r = y; r < y + rows; ++r) {
      for (std::int64_t c = x; c < x + columns; ++c) {
        const auto v = static_cast<double>(squares[image * pixels + r * s.out[2] + c]);
        own += v;
        most = std::max(most, v);
      }
    }
    const double others = static_cast<double>(std::max<std::int64_t>(1, all - rows * columns));
    if (std::isfinite(own) && (inside || !(most * others > kMostUneven * (total - own)))) return;
    direct[tile] = 1;
    any = true;
  });
  return any;
}

// Marks the tiles of this pass that are summed directly; returns whether there are any.
bool mark_direct(const WinogradPass& j, std::uint8_t* direct) {
  const ConvShape& s = j.p.shape;
  const std::int64_t in = j.images * volume(s.in), out = j.images * volume(s.out);
  float* const squares = thread_scratch(4, to_size(in + out));
  square_pixels(j, j.x, s.in_channels, volume(s.in), squares);
  square_pixels(j, j.dy, s.out_channels, volume(s.out), squares + in);
  const bool uneven = find_uneven_tiles(static_cast<int>(kTile), s, {squares, j.images}, direct);
  return mark_gradients(j, squares + in, direct) || uneven;
}

// The products of the tiles that are not transformed: pairs of pixels, as many as tap k has inside both pictures, take the place
// of transformed tiles.
class DirectSums {
 public:
  DirectSums(const WinogradPass& j, std::int64_t k)
      : j_(j), s_(j.p.shape), dy_(k / 3 - s_.pad[1]), dx_(k % 3 - s_.pad[2]), tap_(k) {
    for_tiles(j, 0, j.tiles, [&](std::int64_t image, std::int64_t y, std::int64_t x, std::int64_t tile) {
      if (is_direct(j, tile)) add_tile(image, y, x);
    });
  }

  void add_to(float* dw) const {
    const std::int64_t width = j_.k.width, blocks = width / j_.block, count = static_cast<std::int64_t>(pairs_.size());
    parallel_for(j_.p.panels, 1, [&](std::int64_t begin, std::int64_t end) {
      float* const m = thread_scratch(2, to_size(count * (width + j_.block) + j_.block * width));
      float *const v = m + count * width, *const sums = v + count * j_.block;
      for (std::int64_t panel = begin; panel < end; ++panel) {
        std::fill_n(m, count * width, 0.0F);
        for (std::int64_t b = 0; b < blocks && panel * blocks + b < j_.p.out_blocks; ++b) {
          gather(j_.dy, j_.p.out_blocks, panel * blocks + b, volume(s_.out), &Pair::out, m + b * j_.block, width);
        }
        for (std::int64_t block = 0; block < j_.p.in_blocks; ++block) {
          gather(j_.x, j_.p.in_blocks, block, volume(s_.in), &Pair::in, v, j_.block);
          j_.k.products(v, m, count, false, sums);
          put(block, panel, sums, dw);
        }
      }
    });
  }

 private:
  struct Pair {
    std::int64_t image, in, out;  // pixels
  };

  void add_tile(std::int64_t image, std::int64_t y0, std::int64_t x0) {
    for (std::int64_t y = y0; y < std::min(y0 + kTile, s_.out[1]); ++y) {
      for (std::int64_t x = x0; x < std::min(x0 + kTile, s_.out[2]); ++x) {
        const std::int64_t iy = y + dy_, ix = x + dx_;
        if (iy < 0 || iy >= s_.in[1] || ix < 0 || ix >= s_.in[2]) continue;
        pairs_.push_back({image, iy * s_.in[2] + ix, y * s_.out[2] + x});
      }
    }
  }
  void gather(const float* from, std::int64_t blocks, std::int64_t block, std::int64_t pixels, std::int64_t Pair::*pixel,
              float* to, std::int64_t step) const {
    for (const Pair& p : pairs_) {
      std::copy_n(from + ((p.image * blocks + block) * pixels + p.*pixel) * j_.block, j_.block, to);
      to += step;
    }
  }
  void put(std::int64_t block, std::int64_t panel, const float* sums, float* dw) const {
    const std::int64_t width = j_.k.width, c0 = block * j_.block, m0 = panel * width;
    for (std::int64_t c = c0; c < std::min(c0 + j_.block, s_.in_channels); ++c) {
      for (std::int64_t m = m0; m < std::min(m0 + width, s_.out_channels); ++m) {
        dw[(m * s_.in_channels + c) * 9 + tap_] += sums[(c - c0) * width + m - m0];
      }
    }
  }

  const WinogradPass& j_;
  const ConvShape& s_;
  std::int64_t dy_, dx_;  // from an output to the pixel that the tap reads
  std::int64_t tap_;
  std::vector<Pair> pairs_;
};

}  // namespace

bool conv_winograd_grad_pays(const ConvShape& s) {
  if (channel_block() > winograd_grad_kernels().width) return false;  // no vectors
  if (s.groups != 1 || s.in_channels < kLeastChannels || s.out_channels < kLeastChannels || s.kernel[0] != 1) return false;
  for (int i = 1; i < 3; ++i) {
    if (s.kernel[i] != 3 || s.stride[i] != 1 || s.dilation[i] != 1 || s.out[i] < 1) return false;
  }
  const std::int64_t tiles = up_div(s.out[1], kTile) * up_div(s.out[2], kTile);
  return tiles * kTile * kTile <= 2 * s.out[1] * s.out[2] &&
         tiles * kWinogradElements * (s.in_channels + s.out_channels) <= kMostTransformed;
}

ConvWinogradGrad plan_conv_winograd_grad(const ConvShape& s) {
  ConvWinogradGrad p;
  const std::int64_t block = channel_block(), width = winograd_grad_kernels().width;
  p.shape = s;
  p.rows = up_div(s.out[1], kTile);
  p.columns = up_div(s.out[2], kTile);
  p.in_blocks = up_div(s.in_channels, block);
  p.out_blocks = up_div(s.out_channels, block);
  p.panels = up_div(p.out_blocks * block, width);
  const std::int64_t each = p.rows * p.columns, of_tile = kWinogradElements * (p.in_blocks * block + p.panels * width);
  const std::int64_t tiles = std::max(kLeastTiles, kTransformed / of_tile);
  p.images = std::clamp<std::int64_t>(tiles / each, 1, std::max<std::int64_t>(1, s.batch));
  p.x = to_size(p.images * p.in_blocks * block * volume(s.in));
  p.dy = to_size(p.images * p.out_blocks * block * volume(s.out));
  p.inputs = to_size(p.in_blocks * kWinogradElements * p.images * each * block);
  p.outputs = to_size(p.panels * kWinogradElements * p.images * each * width);
  if (p.images < s.batch) p.sums = to_size(p.in_blocks * p.panels * kWinogradElements * block * width);
  return p;
}

std::size_t conv_winograd_grad_workspace_bytes(const ConvWinogradGrad& p) {
  return (p.x + p.dy + p.inputs + p.outputs + p.sums) * sizeof(float);
}

void conv_winograd_grad_f32(const ConvWinogradGrad& p, const float* x, const float* dy, float* dw, void* workspace) {
  const ConvShape& s = p.shape;
  auto* const blocked = static_cast<float*>(workspace);
  WinogradPass j{p,       winograd_grad_kernels(), channel_block(), 0,       0,       true, false,
                 blocked, blocked + p.x,           nullptr,         nullptr, nullptr, dw};
  j.inputs = j.dy + p.dy;
  j.outputs = j.inputs + p.inputs;
  if (p.sums > 0) j.sums = j.outputs + p.outputs;
  // Columns of the last panel that no block of channels writes are multiplied, too.
  if (p.panels * j.k.width > p.out_blocks * j.block) std::fill_n(j.outputs, p.outputs, 0.0F);
  std::vector<std::uint8_t> direct;
  std::vector<float> beside;  // sums of the tiles that are not transformed, if there are any
  for (std::int64_t n = 0; n < s.batch; n += p.images) {
    j.images = std::min(p.images, s.batch - n);
    j.tiles = j.images * p.rows * p.columns;
    j.first = n == 0;
    j.last = n + j.images == s.batch;
    to_blocked_f32(j.images, s.in_channels, volume(s.in), x + n * s.in_channels * volume(s.in), j.x);
    to_blocked_f32(j.images, s.out_channels, volume(s.out), dy + n * s.out_channels * volume(s.out), j.dy);
    direct.assign(to_size(j.tiles), 0);
    j.direct = mark_direct(j, direct.data()) ? direct.data() : nullptr;
    transform(j);
    multiply(j);
    if (j.direct == nullptr) continue;
    beside.resize(to_size(s.out_channels * s.in_channels * 9));
    for (std::int64_t k = 0; k < 9; ++k) DirectSums(j, k).add_to(beside.data());
  }
  for (std::size_t i = 0; i < beside.size(); ++i) dw[i] += beside[i];
}

}  // namespace sdx::cpu
