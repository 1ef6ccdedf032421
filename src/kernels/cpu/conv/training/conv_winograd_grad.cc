#include "kernels/cpu/conv/training/conv_winograd_grad.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/blocked/blocked_layout.h"
#include "kernels/cpu/conv/blocked/tiled/blocked_winograd_simd.h"
#include "kernels/cpu/conv/training/conv_winograd_grad_simd.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kTile = 4, kLeastChannels = 16;
constexpr std::int64_t kTransformed = 512 * 1024;   // floats per pass
constexpr std::int64_t kLeastTiles = 128;           // per pass, so that sums are seldom read and written again
constexpr std::int64_t kMostTransformed = 4 << 20;  // floats of one image

struct Job {
  const ConvWinogradGrad& p;
  const WinogradGradKernels& k;
  std::int64_t block, tiles, images;  // of this pass
  bool first, last;
  float *x, *dy;            // in blocks
  float *inputs, *outputs;  // transformed: [block or panel][element][tile][block or width]
  float* sums;              // [block][panel][element][block][width]; null if one pass does all
  float* dw;
};

// Calls fn(image, y, x, tile) for tiles [begin, end).
template <class F>
void for_tiles(const Job& j, std::int64_t begin, std::int64_t end, F&& fn) {
  const std::int64_t each = j.p.rows * j.p.columns;
  for (std::int64_t t = begin; t < end; ++t) fn(t / each, t % each / j.p.columns * kTile, t % j.p.columns * kTile, t);
}

void transform_inputs(const Job& j, std::int64_t block, std::int64_t begin, std::int64_t end) {
  const ConvShape& s = j.p.shape;
  const auto input = blocked_winograd_kernels().input;
  WinogradTile w;
  w.rows = w.columns = kTile;
  w.row_step = s.in[2] * j.block;
  w.e_step = j.tiles * j.block;
  for_tiles(j, begin, end, [&](std::int64_t image, std::int64_t y, std::int64_t x, std::int64_t tile) {
    const std::int64_t iy = y - s.pad[1], ix = x - s.pad[2];
    w.row0 = std::clamp<std::int64_t>(-iy, 0, kTile + 2);
    w.row1 = std::clamp<std::int64_t>(s.in[1] - iy, 0, kTile + 2);
    w.column0 = std::clamp<std::int64_t>(-ix, 0, kTile + 2);
    w.column1 = std::clamp<std::int64_t>(s.in[2] - ix, 0, kTile + 2);
    w.x = j.x + (((image * j.p.in_blocks + block) * s.in[1] + iy) * s.in[2] + ix) * j.block;
    w.v = j.inputs + (block * kWinogradElements * j.tiles + tile) * j.block;
    input(static_cast<int>(kTile), w);
  });
}

void transform_outputs(const Job& j, std::int64_t block, std::int64_t begin, std::int64_t end) {
  const ConvShape& s = j.p.shape;
  const std::int64_t width = j.k.width, panel = block * j.block / width, within = block * j.block % width;
  WinogradGradTile w;
  w.row_step = s.out[2] * j.block;
  w.e_step = j.tiles * width;
  for_tiles(j, begin, end, [&](std::int64_t image, std::int64_t y, std::int64_t x, std::int64_t tile) {
    w.rows = std::min(kTile, s.out[1] - y);
    w.columns = std::min(kTile, s.out[2] - x);
    w.dy = j.dy + (((image * j.p.out_blocks + block) * s.out[1] + y) * s.out[2] + x) * j.block;
    w.m = j.outputs + (panel * kWinogradElements * j.tiles + tile) * width + within;
    j.k.tile(w);
  });
}

void transform(const Job& j) {
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

void multiply(const Job& j) {
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
  Job j{p, winograd_grad_kernels(), channel_block(), 0, 0, true, false, blocked, blocked + p.x, nullptr, nullptr, nullptr, dw};
  j.inputs = j.dy + p.dy;
  j.outputs = j.inputs + p.inputs;
  if (p.sums > 0) j.sums = j.outputs + p.outputs;
  // Columns of the last panel that no block of channels writes are multiplied too.
  if (p.panels * j.k.width > p.out_blocks * j.block) std::fill_n(j.outputs, p.outputs, 0.0F);
  for (std::int64_t n = 0; n < s.batch; n += p.images) {
    j.images = std::min(p.images, s.batch - n);
    j.tiles = j.images * p.rows * p.columns;
    j.first = n == 0;
    j.last = n + j.images == s.batch;
    to_blocked_f32(j.images, s.in_channels, volume(s.in), x + n * s.in_channels * volume(s.in), j.x);
    to_blocked_f32(j.images, s.out_channels, volume(s.out), dy + n * s.out_channels * volume(s.out), j.dy);
    transform(j);
    multiply(j);
  }
}

}  // namespace sdx::cpu
