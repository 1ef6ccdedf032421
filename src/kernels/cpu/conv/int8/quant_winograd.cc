#include "kernels/cpu/conv/int8/quant_winograd.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/int8/quant_nhwc_simd.h"
#include "kernels/cpu/conv/int8/quant_winograd_simd.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kElements = 36;
constexpr std::int64_t kPairBlock = 64;        // transformed weights of a panel of 16 columns: 147 KB, in the second-level cache
constexpr std::int64_t kTileBlock = 56;        // sums of these tiles: 129 KB
constexpr std::int64_t kInputBytes = 2 << 20;  // transformed input at a time
constexpr std::int64_t kLeastTiles = 48;       // with fewer, transforming the weights is more than a twentieth of the work

struct Tiles {
  std::int64_t rows, columns, total;
  explicit Tiles(const ConvShape& s) : rows((s.out[1] + 3) / 4), columns((s.out[2] + 3) / 4), total(s.batch * rows * columns) {}
};

struct Call {
  const ConvShape* s;
  Tiles tiles;
  const std::uint8_t* x;
  bool x_signed;
  std::int32_t x_zero;
  const std::int8_t* panels;
  const QEpilogue* epilogue;
  char* y;
  std::int64_t stride;  // of rows of V
  const std::uint8_t* zeros;
};

void pixels_of(const Call& c, std::int64_t tile, const std::uint8_t* (&pixels)[kElements]) {
  const ConvShape& s = *c.s;
  const std::int64_t y0 = tile / c.tiles.columns % c.tiles.rows * 4 - s.pad[1];
  const std::int64_t x0 = tile % c.tiles.columns * 4 - s.pad[2];
  const std::uint8_t* image = c.x + tile / (c.tiles.columns * c.tiles.rows) * s.in[1] * s.in[2] * s.in_channels;
  for (std::int64_t e = 0; e < kElements; ++e) {
    const std::int64_t y = y0 + e / 6, x = x0 + e % 6;
    const bool inside = y >= 0 && y < s.in[1] && x >= 0 && x < s.in[2];
    pixels[e] = inside ? image + (y * s.in[2] + x) * s.in_channels : c.zeros;
  }
}

// Transforms the products M[36][count][nr] of tiles [t0, t0 + count) of one panel into results, and stores them in y.
void write_tiles(const Call& c, const QNhwcKernels& kernels, const QWinogradKernels& w, std::int64_t t0, std::int64_t count,
                 std::int64_t column, const std::int32_t* m, std::int32_t* sums) {
  const ConvShape& s = *c.s;
  const std::int64_t bytes = bytes_per_output(*c.epilogue);
  const std::int64_t n = std::min<std::int64_t>(kernels.nr, s.out_channels - column);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t tile = t0 + i;
    const std::int64_t oy = tile / c.tiles.columns % c.tiles.rows * 4;
    const std::int64_t ox = tile % c.tiles.columns * 4;
    const std::int64_t batch = tile / (c.tiles.columns * c.tiles.rows);
    w.output(m + i * kernels.nr, count * kernels.nr, sums);
    for (std::int64_t r = 0; r < std::min<std::int64_t>(4, s.out[1] - oy); ++r) {
      const std::int64_t pixel = (batch * s.out[1] + oy + r) * s.out[2] + ox;
      kernels.finish(*c.epilogue, sums + r * 4 * kernels.nr, std::min<std::int64_t>(4, s.out[2] - ox), n, column,
                     c.y + (pixel * s.out_channels + column) * bytes, s.out_channels);
    }
  }
}

// Computes one panel of output channels for tiles [t0, t1). The transformed input V[36][first to last][stride] starts at `first`.
void panel(const Call& c, const QNhwcKernels& kernels, const QWinogradKernels& w, std::int64_t p, const std::int16_t* v,
           std::int64_t v_step, std::int64_t first, std::int64_t t0, std::int64_t t1) {
  const std::int64_t nr = kernels.nr;
  const std::int64_t pairs = c.s->in_channels / 2;
  const std::int64_t parts = (pairs + kPairBlock - 1) / kPairBlock;
  const Cuts blocks(t1 - t0, kTileBlock);
  const std::int64_t most = (t1 - t0 + blocks.parts - 1) / blocks.parts;
  // 64 bytes more than a power of two: exactly a power of two apart, the same line of all 36 elements would compete for one set
  // of the first-level cache.
  const std::int64_t u_step = std::min(pairs, kPairBlock) * nr * 2 + 32;
  auto* u = reinterpret_cast<std::int16_t*>(thread_scratch(0, to_size(kElements * u_step / 2)));
  auto* m = reinterpret_cast<std::int32_t*>(thread_scratch(1, to_size(kElements * most * nr + 16 * nr)));
  std::int32_t* sums = m + kElements * most * nr;
  for (std::int64_t b = 0; b < blocks.parts; ++b) {
    const std::int64_t begin = t0 + blocks.begin(b);
    const std::int64_t count = blocks.size(b);
    const Cuts rows(count, kernels.mr);
    for (std::int64_t k = 0; k < parts; ++k) {
      QRows t;
      t.stride = c.stride;
      t.pairs = std::min(kPairBlock, pairs - k * kPairBlock);
      t.add = k > 0;
      if (b == 0 || parts > 1)
        w.weights(c.panels + (p * 9 * pairs + k * kPairBlock) * nr * 2, pairs * nr * 2, t.pairs, u, u_step);
      for (std::int64_t e = 0; e < kElements; ++e) {
        t.b = u + e * u_step;
        for (std::int64_t r = 0; r < rows.parts; ++r) {
          t.m = rows.size(r);
          t.a = v + e * v_step + (begin - first + rows.begin(r)) * c.stride + k * kPairBlock * 2;
          t.sums = m + (e * count + rows.begin(r)) * nr;
          kernels.product(t);
        }
      }
    }
    write_tiles(c, kernels, w, begin, count, p * nr, m, sums);
  }
}

}  // namespace

bool qwinograd_pays(const ConvShape& s, std::int64_t largest) {
  if (qwinograd_kernels() == nullptr || largest >= kWinogradSums) return false;
  if (s.groups != 1 || s.in_channels % 16 != 0 || s.in_channels < 32 || s.out_channels < 16) return false;
  for (int i = 0; i < 3; ++i) {
    if (s.kernel[i] != (i == 0 ? 1 : 3) || s.stride[i] != 1 || s.dilation[i] != 1) return false;
  }
  if (s.in[0] != 1 || s.out[0] != 1 || s.pad[0] != 0) return false;
  // Counts vector operations for each pair of an input and an output channel (8 lanes): 4.5 to multiply a tile and 10 to
  // transform the weights. Direct summation takes 9 / 8 for each pixel.
  const double direct = static_cast<double>(s.batch * s.out[1] * s.out[2]) * 9 / 8;
  return static_cast<double>(Tiles(s).total) * 4.5 + 10 < 0.7 * direct;
}

void qwinograd_conv(const ConvShape& s, const std::uint8_t* x, bool x_signed, std::int32_t x_zero, const std::int8_t* panels,
                    const QEpilogue& epilogue, char* y) {
  const QNhwcKernels& kernels = qnhwc_kernels();
  const QWinogradKernels& w = *qwinograd_kernels();
  const Tiles tiles(s);
  const std::int64_t channels = s.in_channels;
  const std::int64_t stride = (channels / 16 | 1) * 16;  // an odd multiple of 32 bytes: see row_stride() in quant_nhwc.cc
  const std::int64_t wanted = std::max(kLeastTiles, kInputBytes / (kElements * stride * 2));
  const Cuts groups(tiles.total, std::min(tiles.total, wanted));
  const std::int64_t most = (tiles.total + groups.parts - 1) / groups.parts;
  const std::int64_t v_step = most * stride;
  float* shared = thread_scratch(2, to_size(kElements * v_step / 2 + round_up(channels, 64) / 4));
  auto* v = reinterpret_cast<std::int16_t*>(shared);
  auto* zeros = reinterpret_cast<std::uint8_t*>(v + kElements * v_step);
  std::memset(zeros, x_zero & 0xFF, to_size(channels));
  const Call c{&s, tiles, x, x_signed, x_zero, panels, &epilogue, y, stride, zeros};
  const std::int64_t panel_count = (s.out_channels + kernels.nr - 1) / kernels.nr;
  for (std::int64_t g = 0; g < groups.parts; ++g) {
    const std::int64_t first = groups.begin(g);
    const std::int64_t count = groups.size(g);
    parallel_for(count, std::max<std::int64_t>(1, 4096 / channels), [&](std::int64_t begin, std::int64_t end) {
      const std::uint8_t* pixels[kElements];
      for (std::int64_t t = begin; t < end; ++t) {
        pixels_of(c, first + t, pixels);
        w.input(pixels, x_signed, x_zero, channels, v + t * stride, v_step);
      }
    });
    // If there are fewer panels than threads, tiles are divided, too.
    const std::int64_t threads = current_pool().threads();
    const std::int64_t parts = panel_count >= threads ? 1 : std::clamp<std::int64_t>(count / kernels.mr, 1, threads);
    const Cuts cuts(count, (count + parts - 1) / parts);
    parallel_for(panel_count * cuts.parts, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t part = i % cuts.parts;
        panel(c, kernels, w, i / cuts.parts, v, v_step, first, first + cuts.begin(part), first + cuts.begin(part + 1));
      }
    });
  }
}

}  // namespace sdx::cpu
