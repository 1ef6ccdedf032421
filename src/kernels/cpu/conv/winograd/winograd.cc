#include "kernels/cpu/conv/winograd/winograd.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/plain/conv_simd.h"
#include "kernels/cpu/conv/winograd/uneven.h"
#include "kernels/cpu/conv/winograd/winograd_simd.h"
#include "kernels/cpu/elementwise/elementwise_simd.h"
#include "kernels/cpu/gemm/gemm_block.h"
#include "kernels/cpu/gemm/gemm_simd.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kMaxTiles = 64;             // columns of one block of tiles
constexpr std::int64_t kBlockFloats = 512 * 1024;  // transformed input of one block, 2 MB
constexpr std::int64_t kRowChunk = 48;             // output channels between two output transforms

std::int64_t elements_of(int t) { return (t + 2) * (t + 2); }

struct WinogradArguments {
  int t;
  const ConvShape* s;
  const GemmKernels* gemm;
  const ConvKernels* conv;
  const WinogradKernels* winograd;
  const ElementwiseKernels* elementwise;
  std::int64_t tiles_x;
  std::int64_t block;  // columns, a multiple of nr
  std::int64_t phase_width;
  const std::uint8_t* uneven = nullptr;  // [image][tile], see uneven.h; null: none
};

// Tiles of a block that are computed directly: their numbers in the block, and results [output channel][tile][t][t].
struct Direct {
  std::int64_t count = 0;
  std::int64_t at[kMaxTiles];
  float* results = nullptr;
};

// Transforms tiles [first, first + count) of one image: v[e] are packed panels over all channels.
void transform_input(const WinogradArguments& job, const float* x, std::int64_t first, std::int64_t count, float* v,
                     float* scratch) {
  const ConvShape& s = *job.s;
  const int t = job.t;
  const std::int64_t nr = job.gemm->nr;
  const std::int64_t elements = elements_of(t);
  const std::int64_t columns = round_up(count, nr);
  const std::int64_t ld = columns + job.winograd->lanes;
  float* rows = scratch;
  float* tiles = rows + (t + 2) * t * job.phase_width;
  const Cuts ks = k_cuts(s.in_channels);
  for (std::int64_t kb = 0; kb < ks.parts; ++kb) {
    const std::int64_t k0 = ks.begin(kb);
    const std::int64_t kc = ks.size(kb);
    for (std::int64_t c = k0; c < k0 + kc; ++c) {
      const float* plane = x + c * s.in[1] * s.in[2];
      for (std::int64_t j = 0; j < count;) {
        const std::int64_t ty = (first + j) / job.tiles_x;
        const std::int64_t tx = (first + j) % job.tiles_x;
        const std::int64_t n = std::min(count - j, job.tiles_x - tx);
        for (std::int64_t r = 0; r < t + 2; ++r) {
          const std::int64_t iy = ty * t - s.pad[1] + r;
          float* to = rows + r * t * job.phase_width;
          if (iy < 0 || iy >= s.in[1]) {
            std::memset(to, 0, static_cast<std::size_t>(t * job.phase_width) * sizeof(float));
          } else {
            job.conv->split_rows(plane + iy * s.in[2], 1, s.in[2], s.pad[2], t, job.phase_width, to);
          }
        }
        // Runs of tiles are written in order: the next one overwrites what a run writes past its end.
        job.winograd->input(t, rows + tx, job.phase_width, n, tiles + j, ld);
        j += n;
      }
      if (count < columns) {
        for (std::int64_t e = 0; e < elements; ++e) std::fill(tiles + e * ld + count, tiles + e * ld + columns, 0.0F);
      }
      job.winograd->spread(tiles, ld, elements, columns, v + k0 * columns + (c - k0) * nr, s.in_channels * columns, kc * nr);
    }
  }
}

// m[e] = u[e] v[e] for output channels [m0, m1) (tile borders of the packed weights).
void multiply(const WinogradArguments& job, const float* packed, const Cuts& tiles, std::int64_t first_tile,
              std::int64_t end_tile, std::int64_t count, const float* v, float* m) {
  const ConvShape& s = *job.s;
  const std::int64_t nr = job.gemm->nr;
  const std::int64_t columns = round_up(count, nr);
  const std::int64_t row0 = tiles.begin(first_tile);
  const std::int64_t rows = tiles.begin(end_tile) - row0;
  const Cuts ks = k_cuts(s.in_channels);
  GemmTile g;
  g.ldc = columns;
  g.ldb = nr;
  g.n = nr;
  for (std::int64_t e = 0; e < elements_of(job.t); ++e) {
    for (std::int64_t kb = 0; kb < ks.parts; ++kb) {
      const std::int64_t k0 = ks.begin(kb);
      const std::int64_t kc = ks.size(kb);
      const float* u = packed + (e * s.in_channels + k0) * s.out_channels;
      g.k = kc;
      g.accumulate = kb > 0;
      for (std::int64_t p = 0; p < columns; p += nr) {
        g.b = v + (e * s.in_channels + k0) * columns + p * kc;
        for (std::int64_t i = first_tile; i < end_tile; ++i) {
          g.a = u + tiles.begin(i) * kc;
          g.m = tiles.size(i);
          g.c = m + (e * rows + tiles.begin(i) - row0) * columns + p;
          job.gemm->tile(g);
        }
      }
    }
  }
}

// Sums of products for some output channels and some of a block's tiles, without transforms. The taps come from the packed
// weights.
class DirectTiles {
 public:
  DirectTiles(const WinogradArguments& job, const float* x, const float* packed, const Cuts& tiles)
      : job_(job), s_(*job.s), x_(x), packed_(packed), tiles_(tiles), nr_(job.gemm->nr), outputs_(job.t * job.t) {}

  // Channels [first_tile, end_tile), in tiles of the packed weights. `first`: the block's first tile.
  void compute(std::int64_t first_tile, std::int64_t end_tile, std::int64_t first, const Direct& direct) const {
    for (std::int64_t i = 0; i < direct.count; i += kTogether) {
      some(first_tile, end_tile, first, direct, i, std::min(kTogether, direct.count - i));
    }
  }

 private:
  static constexpr std::int64_t kTogether = 8, kTaps = 9;

  void some(std::int64_t first_tile, std::int64_t end_tile, std::int64_t first, const Direct& direct, std::int64_t begin,
            std::int64_t count) const {
    const std::int64_t columns = round_up(count * outputs_, nr_);
    const std::int64_t row0 = tiles_.begin(first_tile), rows = tiles_.begin(end_tile) - row0;
    const Cuts ks = k_cuts(s_.in_channels);
    float* const b = thread_scratch(0, to_size((kTaps * ks.size(0) + rows) * columns + kTaps * ks.size(0) * job_.gemm->mr));
    float* const sums = b + kTaps * ks.size(0) * columns;
    float* const a = sums + rows * columns;
    for (std::int64_t kb = 0; kb < ks.parts; ++kb) {
      const std::int64_t k0 = ks.begin(kb), kc = ks.size(kb);
      std::fill_n(b, kTaps * kc * columns, 0.0F);
      for (std::int64_t k = 0; k < kTaps; ++k) {
        for (std::int64_t i = 0; i < count; ++i)
          gather(first + direct.at[begin + i], k, k0, kc, i * outputs_, b + k * kc * columns);
      }
      for (std::int64_t i = first_tile; i < end_tile; ++i)
        multiply(i, k0, kc, columns, a, b, sums + (tiles_.begin(i) - row0) * columns);
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      std::copy_n(sums + r * columns, count * outputs_, direct.results + (r * direct.count + begin) * outputs_);
    }
  }

  // The input that the outputs of a tile read through tap k, in columns from `column` on of panels [kc][nr].
  void gather(std::int64_t tile, std::int64_t k, std::int64_t k0, std::int64_t kc, std::int64_t column, float* panels) const {
    const std::int64_t t = job_.t, plane = s_.in[1] * s_.in[2];
    const std::int64_t y0 = tile / job_.tiles_x * t - s_.pad[1] + k / 3, x0 = tile % job_.tiles_x * t - s_.pad[2] + k % 3;
    for (std::int64_t o = 0; o < outputs_; ++o, ++column) {
      const std::int64_t y = y0 + o / t, x = x0 + o % t;
      if (y < 0 || y >= s_.in[1] || x < 0 || x >= s_.in[2]) continue;
      const float* const from = x_ + k0 * plane + y * s_.in[2] + x;
      float* const to = panels + column / nr_ * kc * nr_ + column % nr_;
      for (std::int64_t c = 0; c < kc; ++c) to[c * nr_] = from[c * plane];
    }
  }

  // Adds the products with tile i of the packed weights, for channels [k0, k0 + kc) of the input.
  void multiply(std::int64_t i, std::int64_t k0, std::int64_t kc, std::int64_t columns, float* a, const float* b,
                float* sums) const {
    const std::int64_t rows = tiles_.size(i), step = s_.in_channels * s_.out_channels;
    job_.winograd->filters(job_.t, packed_ + k0 * s_.out_channels + tiles_.begin(i) * kc, step, kc * rows, a);
    GemmTile g;
    g.ldc = columns;
    g.ldb = g.n = nr_;
    g.k = kc;
    g.m = rows;
    for (std::int64_t k = 0; k < kTaps; ++k) {
      g.accumulate = k0 > 0 || k > 0;
      g.a = a + k * kc * rows;
      for (std::int64_t p = 0; p < columns; p += nr_) {
        g.b = b + k * kc * columns + p * kc;
        g.c = sums + p;
        job_.gemm->tile(g);
      }
    }
  }

  const WinogradArguments& job_;
  const ConvShape& s_;
  const float* x_;
  const float* packed_;
  const Cuts& tiles_;
  std::int64_t nr_, outputs_;
};

// The tiles of a block that are computed directly.
void find_direct(const WinogradArguments& job, std::int64_t image, std::int64_t total, std::int64_t first, std::int64_t count,
                 Direct& direct) {
  direct.count = 0;
  if (job.uneven == nullptr) return;
  const std::uint8_t* const uneven = job.uneven + image * total + first;
  for (std::int64_t i = 0; i < count; ++i) {
    if (uneven[i] != 0) direct.at[direct.count++] = i;
  }
}

// Replaces the transforms' results in rows [row][t][ld] of one channel.
void put_direct(const WinogradArguments& job, const Direct& direct, std::int64_t row, float* results, std::int64_t ld) {
  const std::int64_t t = job.t;
  for (std::int64_t i = 0; i < direct.count; ++i) {
    const float* from = direct.results + (row * direct.count + i) * t * t;
    for (std::int64_t r = 0; r < t; ++r, from += t) std::copy_n(from, t, results + r * ld + direct.at[i] * t);
  }
}

void transform_output(const WinogradArguments& job, const float* m, std::int64_t row0, std::int64_t rows, std::int64_t first,
                      std::int64_t count, const Direct& direct, const float* bias, const float* residual, const UnarySpec& act,
                      float* y, float* scratch) {
  const ConvShape& s = *job.s;
  const int t = job.t;
  const std::int64_t columns = round_up(count, job.gemm->nr);
  const std::int64_t ld = columns * t;
  for (std::int64_t r = 0; r < rows; ++r) {
    job.winograd->output(t, m + r * columns, rows * columns, count, scratch, ld);
    put_direct(job, direct, r, scratch, ld);
    const std::int64_t plane = (row0 + r) * s.out[1] * s.out[2];
    const float b = bias != nullptr ? bias[row0 + r] : 0.0F;
    for (std::int64_t j = 0; j < count;) {
      const std::int64_t ty = (first + j) / job.tiles_x;
      const std::int64_t tx = (first + j) % job.tiles_x;
      const std::int64_t n = std::min(count - j, job.tiles_x - tx);
      const std::int64_t width = std::min(n * t, s.out[2] - tx * t);
      for (std::int64_t i = 0; i < t && ty * t + i < s.out[1]; ++i) {
        const std::int64_t at = plane + (ty * t + i) * s.out[2] + tx * t;
        job.elementwise->bias_act(scratch + i * ld + j * t, b, residual != nullptr ? residual + at : nullptr, act, y + at, width);
      }
      j += n;
    }
  }
}

}  // namespace

bool winograd_supports(const ConvShape& s) {
  if (s.groups != 1 || s.in[0] != 1 || s.out[0] != 1 || s.kernel[0] != 1 || s.pad[0] != 0) return false;
  for (int i = 1; i < 3; ++i) {
    if (s.kernel[i] != 3 || s.stride[i] != 1 || s.dilation[i] != 1) return false;
  }
  return true;
}

std::size_t winograd_packed_bytes(int t, const ConvShape& s) {
  return static_cast<std::size_t>(elements_of(t) * s.in_channels * s.out_channels) * sizeof(float);
}

void winograd_pack(int t, const ConvShape& s, const void* weights, float* packed) {
  const Cuts tiles(s.out_channels, gemm_kernels().mr);
  const Cuts ks = k_cuts(s.in_channels);
  const WinogradKernels& kernels = winograd_kernels();
  // Filters in the order of the packed tile, (channel, row), a few at a time.
  constexpr std::int64_t kFilters = 64;
  parallel_for(tiles.parts, 1, [&](std::int64_t begin, std::int64_t end) {
    float g[9 * kFilters + 32] = {};
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t rows = tiles.size(i);
      for (std::int64_t kb = 0; kb < ks.parts; ++kb) {
        const std::int64_t k0 = ks.begin(kb);
        const std::int64_t kc = ks.size(kb);
        float* to = packed + k0 * s.out_channels + tiles.begin(i) * kc;
        for (std::int64_t at = 0; at < kc * rows; at += kFilters) {
          const std::int64_t count = std::min(kFilters, kc * rows - at);
          for (std::int64_t n = 0; n < count; ++n) {
            const std::int64_t m = tiles.begin(i) + (at + n) % rows;
            const std::int64_t c = k0 + (at + n) / rows;
            float w[9];
            std::memcpy(w, static_cast<const char*>(weights) + (m * s.in_channels + c) * 36, sizeof(w));
            for (std::int64_t k = 0; k < 9; ++k) g[k * kFilters + n] = w[k];
          }
          kernels.weights(t, g, kFilters, count, to + at, s.in_channels * s.out_channels);
        }
      }
    }
  });
}

namespace {

bool mark_uneven(int t, const ConvShape& s, const float* x, std::uint8_t* uneven) {
  const std::int64_t plane = s.in[1] * s.in[2];
  float* const squares = thread_scratch(4, to_size(s.batch * plane));
  constexpr std::int64_t kGrain = std::int64_t{1} << 16;
  parallel_for(s.batch * s.in[1], std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, s.in_channels * s.in[2])),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end;) {
                   const std::int64_t image = i / s.in[1], row = i % s.in[1], rows = std::min(end - i, s.in[1] - row);
                   winograd_kernels().squares(x + image * s.in_channels * plane + row * s.in[2], plane, s.in_channels,
                                              rows * s.in[2], squares + i * s.in[2]);
                   i += rows;
                 }
               });
  return find_uneven_tiles(t, s, {squares, s.batch}, uneven);
}

}  // namespace

void conv_winograd(int t, const ConvShape& s, const float* x, const float* packed, const float* bias, const float* residual,
                   const UnarySpec& act, float* y) {
  if (s.out[1] <= 0 || s.out[2] <= 0 || s.out_channels <= 0) return;
  WinogradArguments job{t, &s, &gemm_kernels(), &conv_kernels(), &winograd_kernels(), &elementwise_kernels(), 0, 0, 0};
  const std::int64_t nr = job.gemm->nr;
  const std::int64_t elements = elements_of(t);
  job.tiles_x = (s.out[2] + t - 1) / t;
  const std::int64_t total = job.tiles_x * ((s.out[1] + t - 1) / t);
  const std::int64_t fit = kBlockFloats / (elements * std::max<std::int64_t>(1, s.in_channels)) / nr * nr;
  const std::int64_t most = std::clamp(fit, nr, std::max(nr, kMaxTiles));
  const std::int64_t block_count = (total + most - 1) / most;
  job.block = std::min(most, round_up((total + block_count - 1) / block_count, nr));
  job.phase_width = job.tiles_x + 2 + job.winograd->lanes;
  const std::int64_t blocks = (total + job.block - 1) / job.block;
  const Cuts tiles(s.out_channels, job.gemm->mr);
  // With fewer blocks than threads, the output channels are cut too, and each part transforms the input again.
  const std::int64_t threads = current_pool().threads();
  const std::int64_t parts =
      std::clamp<std::int64_t>(threads / (blocks * s.batch), 1, std::max<std::int64_t>(1, tiles.parts / 8));
  const Cuts shares(tiles.parts, (tiles.parts + parts - 1) / parts);
  const std::int64_t chunk = std::max<std::int64_t>(1, kRowChunk / job.gemm->mr);  // in tiles
  std::vector<std::uint8_t> uneven(to_size(s.batch * total));
  if (mark_uneven(t, s, x, uneven.data())) job.uneven = uneven.data();
  parallel_for(s.batch * blocks * shares.parts, 1, [&](std::int64_t begin, std::int64_t end) {
    float* v = thread_scratch(2, static_cast<std::size_t>(elements * s.in_channels * job.block));
    const std::int64_t m_floats = elements * chunk * job.gemm->mr * job.block;
    const std::int64_t tile_floats =
        std::max((t + 2) * t * job.phase_width + elements * (job.block + job.winograd->lanes), job.block * t * t + 64);
    float* m = thread_scratch(3, static_cast<std::size_t>(m_floats + tile_floats));
    float* spare = m + m_floats;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t share = i % shares.parts;
      const std::int64_t first = i / shares.parts % blocks * job.block;
      const std::int64_t image = i / shares.parts / blocks;
      const std::int64_t count = std::min(job.block, total - first);
      transform_input(job, x + image * s.in_channels * s.in[1] * s.in[2], first, count, v, spare);
      const std::int64_t at = image * s.out_channels * s.out[1] * s.out[2];
      Direct direct;
      find_direct(job, image, total, first, count, direct);
      if (direct.count > 0) direct.results = thread_scratch(1, to_size(chunk * job.gemm->mr * direct.count * t * t));
      const DirectTiles directly(job, x + image * s.in_channels * s.in[1] * s.in[2], packed, tiles);
      for (std::int64_t c = shares.begin(share); c < shares.begin(share + 1); c += chunk) {
        const std::int64_t ce = std::min(shares.begin(share + 1), c + chunk);
        multiply(job, packed, tiles, c, ce, count, v, m);
        directly.compute(c, ce, first, direct);
        transform_output(job, m, tiles.begin(c), tiles.begin(ce) - tiles.begin(c), first, count, direct, bias,
                         residual != nullptr ? residual + at : nullptr, act, y + at, spare);
      }
    }
  });
}

}  // namespace sdx::cpu
