#include "kernels/cpu/conv/plain/conv_shifted.h"

#include <algorithm>
#include <vector>

#include "kernels/cpu/conv/plain/conv_simd.h"
#include "kernels/cpu/gemm/gemm_block.h"
#include "kernels/cpu/gemm/gemm_split.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kLine = 16;  // floats of a cache line

// The copy of some channels for some outputs: [channel][phase][width], where phase p holds every stride-th input from the p-th
// on.
struct Copy {
  const ConvShape* s;
  std::int64_t columns;  // of outputs, the most at a time
  std::int64_t width;    // of a phase

  explicit Copy(const ConvShape& shape, std::int64_t rows, std::int64_t outputs, const GemmKernels& kernels) : s(&shape) {
    // With few rows, more columns stay in the second-level cache, and more of them share the inputs at their ends.
    columns = std::min(round_up(outputs, kernels.nr), rows <= 128 ? 2 * kGemmNBlock : kGemmNBlock);
    width = round_up(columns + (s->kernel[2] - 1) * s->dilation[2] / s->stride[2] + 1, kLine);
    // Channels a multiple of 4 KB apart would share few sets of the first-level cache.
    if (width * s->stride[2] % 256 == 0) width += kLine;
  }
  std::int64_t channel_floats() const { return s->stride[2] * width; }
  // The floats of as many channels as a block of K touches.
  std::int64_t floats(std::int64_t lanes) const {
    const std::int64_t touched = std::min((kGemmKBlock - 1) / s->kernel[2] + 2, s->in_channels / s->groups);
    return touched * channel_floats() + lanes;
  }
  // The position of each row of the patch matrix within the copy of its block of K.
  std::vector<std::int64_t> rows(std::int64_t k_total) const {
    const std::int64_t taps = s->kernel[2];
    std::vector<std::int64_t> of_tap, all;
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      const std::int64_t at = tap * s->dilation[2];
      of_tap.push_back(at % s->stride[2] * width + at / s->stride[2]);
    }
    const Cuts ks = k_cuts(k_total);
    for (std::int64_t i = 0; i < ks.parts; ++i) {
      std::int64_t tap = ks.begin(i) % taps, channel = 0;
      for (std::int64_t k = 0; k < ks.size(i); ++k) {
        all.push_back(channel * channel_floats() + of_tap[to_size(tap)]);
        if (++tap < taps) continue;
        tap = 0;
        ++channel;
      }
    }
    return all;
  }
};

// Several short panels at a time, so that rows of C are written in longer runs, as in gemm_block().
std::int64_t panels_together(const GemmKernels& kernels, std::int64_t kc) {
  return std::clamp<std::int64_t>(4096 / (kc * kernels.nr), 1, 8);
}

GemmTile tile_of(const GemmArgs& args, std::int64_t k0, std::int64_t kc, const float* from, const std::int64_t* rows) {
  GemmTile t;
  t.ldc = args.ldc;
  t.ld_residual = args.epilogue.ld_residual;
  t.act = args.epilogue.act;
  t.k = kc;
  t.accumulate = k0 > 0;
  t.last = k0 + kc == args.k;
  t.b = from;
  t.b_rows = rows;
  return t;
}

// Results and residuals come from memory if they are long.
void fetch_results(const GemmTile& t) {
  for (std::int64_t i = 0; i < t.m; ++i) {
    __builtin_prefetch(t.c + i * t.ldc, 1);
    __builtin_prefetch(t.c + i * t.ldc + 16, 1);
    if (t.residual == nullptr) continue;
    __builtin_prefetch(t.residual + i * t.ld_residual);
    __builtin_prefetch(t.residual + i * t.ld_residual + 16);
  }
}

// One block of K, copied to `from` for columns from n0 on.
void multiply(const GemmKernels& kernels, const GemmArgs& args, std::int64_t m0, std::int64_t m1, std::int64_t n0,
              std::int64_t n1, std::int64_t k0, std::int64_t kc, const float* from, const std::int64_t* rows) {
  const Cuts tiles(args.m, kernels.mr);
  const Epilogue& e = args.epilogue;
  const std::int64_t together = panels_together(kernels, kc) * kernels.nr;
  GemmTile t = tile_of(args, k0, kc, from, rows);
  std::int64_t first = m0 * tiles.parts / args.m;
  while (tiles.begin(first) > m0) --first;
  while (tiles.begin(first) < m0) ++first;
  for (std::int64_t n = n0; n < n1; n += together) {
    const std::int64_t end = std::min(n1, n + together);
    for (std::int64_t i = first; i < tiles.parts && tiles.begin(i) < m1; ++i) {
      const std::int64_t row = tiles.begin(i);
      t.m = tiles.size(i);
      t.a = args.packed_a + k0 * args.m + row * kc;
      t.bias_row = e.bias != nullptr && t.last ? e.bias + row : nullptr;
      for (std::int64_t column = n; column < end; column += kernels.nr) {
        t.n = std::min<std::int64_t>(kernels.nr, n1 - column);
        t.b = from + column - n0;
        t.c = args.c + row * args.ldc + column;
        t.residual = e.residual != nullptr && !t.accumulate ? e.residual + row * e.ld_residual + column : nullptr;
        fetch_results(t);
        kernels.tile(t);
      }
    }
  }
}

}  // namespace

bool conv_is_shifted(const ConvShape& s) {
  for (int axis = 0; axis < 2; ++axis) {
    if (s.in[axis] != 1 || s.out[axis] != 1 || s.kernel[axis] != 1 || s.pad[axis] != 0) return false;
  }
  constexpr std::int64_t kMost = 4096, kMostFloats = 768 * 1024;
  if (s.kernel[2] < 2 || s.kernel[2] > kMost || s.dilation[2] > kMost || s.stride[2] > s.kernel[2]) return false;
  const GemmKernels& kernels = gemm_kernels();
  const std::int64_t m = s.out_channels / s.groups, n = s.out[2], k = s.in_channels / s.groups * s.kernel[2];
  if (split_pays(m, n, k, kSplitTransposed)) return false;
  // Every second load of a short vector in place crosses a cache line. Multiplying so takes 5 to 9 % longer with AVX2, and
  // gathering patches is cheaper than that if many rows share them: 384 filters of 3 taps take 6.3 ms instead of 6.8.
  constexpr std::int64_t kManyRows = 128;
  if (kernels.nr <= kShortPanel && m > kManyRows) return false;
  const Copy copy(s, m, n, kernels);
  // Inputs far beyond a window's end are copied, too, and shared by few outputs.
  return copy.channel_floats() <= s.kernel[2] * std::min(n, copy.columns) && copy.floats(kernels.nr) <= kMostFloats;
}

void shifted_block(const GemmKernels& kernels, const ConvShape& s, const float* x, const GemmArgs& args, std::int64_t m0,
                   std::int64_t m1, std::int64_t n0, std::int64_t n1) {
  const Copy copy(s, args.m, n1 - n0, kernels);
  float* const copied = thread_scratch(1, to_size(copy.floats(kernels.nr)));
  const Cuts ks = k_cuts(args.k);
  const std::vector<std::int64_t> rows = copy.rows(args.k);
  for (std::int64_t n = n0; n < n1; n += copy.columns) {
    const std::int64_t end = std::min(n1, n + copy.columns);
    for (std::int64_t i = 0; i < ks.parts; ++i) {
      const std::int64_t k0 = ks.begin(i), kc = ks.size(i), first = k0 / s.kernel[2];
      conv_kernels().split_rows(x + first * s.in[2], up_div(k0 + kc, s.kernel[2]) - first, s.in[2], s.pad[2] - n * s.stride[2],
                                s.stride[2], copy.width, copied);
      // Blocks of rows keep the part of A in use within the second-level cache.
      const Cuts tiles(args.m, kernels.mr);
      const std::int64_t most = kGemmMBlock / kernels.mr;
      for (std::int64_t t = 0; t < tiles.parts; t += most) {
        const std::int64_t from = std::max(m0, tiles.begin(t)), to = std::min(m1, tiles.begin(std::min(tiles.parts, t + most)));
        if (from < to) multiply(kernels, args, from, to, n, end, k0, kc, copied, rows.data() + k0);
      }
    }
  }
}

}  // namespace sdx::cpu
