#include "kernels/cpu/conv/blocked/blocked_split.h"

#include <algorithm>

#include "kernels/cpu/elementwise/elementwise_simd.h"
#include "kernels/cpu/gemm/gemm_simd.h"
#include "kernels/cpu/gemm/gemm_split_run.h"
#include "kernels/cpu/simd/cuts.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kChunk = 16;
// Split pixels take up to 393 KB, a split panel 98 KB: both, and the next panel, stay in the second-level cache.
constexpr std::int64_t kMostChunks = 32;
constexpr std::int64_t kRowChunks = 4096;

// Some chunks of some pixels, and of all weights and results.
struct Block {
  const SplitPixels* from;
  const float* weights;
  std::int64_t pairs;
  const SplitResults* to;
  std::int64_t chunk, chunks, pixel, pixels;

  bool first() const { return chunk == 0; }
  bool last() const { return chunk + chunks == from->count; }
  const float* panel(std::int64_t pair) const { return weights + (pair * from->count + chunk) * kChunk * kSplitColumns; }
  const float* pixel_at(std::int64_t p) const {
    if (from->places != nullptr) return from->x + from->places[p];
    return from->x + p / from->width * from->line_step + p % from->width * from->pixel_step;
  }
};

SplitRows split_block(const SplitKernels& split, const Block& b, std::uint16_t* to) {
  SplitRows rows{to, b.chunks * kChunk};
  const std::int64_t* const chunks = b.from->chunks + b.chunk;
  for (std::int64_t row = 0; row < b.pixels; row += kChunk) {
    const float* x[kChunk];
    const std::int64_t count = std::min(kChunk, b.pixels - row);
    for (std::int64_t i = 0; i < count; ++i) x[i] = b.pixel_at(b.pixel + row + i);
    split.split_chunks(rows, x, chunks, row, count);
  }
  split.clear_rest(rows, b.pixels);
  return rows;
}

// Adds up in floats where there is an infinity or NaN.
void plain_sums(const Block& b, const SplitPart& part, float* sums) {
  std::fill(sums, sums + part.rows * kSplitColumns, 0.0F);
  for (std::int64_t i = 0; i < part.rows; ++i) {
    const float* const x = b.pixel_at(b.pixel + part.row + i);
    const float* w = b.panel(part.column / kSplitColumns);
    float* const sum = sums + i * kSplitColumns;
    for (std::int64_t k = 0; k < b.chunks * kChunk; ++k, w += kSplitColumns) {
      const float v = x[b.from->chunks[b.chunk + k / kChunk] + k % kChunk];
      for (std::int64_t j = 0; j < kSplitColumns; ++j) sum[j] += v * w[j];
    }
  }
}

void store(const GemmKernels& kernels, const Block& b, const SplitPart& part, const float* sums) {
  const SplitResults& to = *b.to;
  for (std::int64_t v = 0; v < 2; ++v) {
    const std::int64_t vector = part.column / kChunk + v;
    const std::int64_t at = vector * to.plane_step + (b.pixel + part.row) * kChunk;
    GemmTile t;
    t.c = to.y + at;
    t.ldc = t.ld_residual = kChunk;
    t.m = part.rows;
    t.n = kChunk;
    t.accumulate = !b.first();
    t.last = b.last();
    t.bias_col = to.bias + vector * kChunk;
    // It joins in the first block, before anything is written to results that it may be.
    t.residual = to.residual != nullptr && b.first() ? to.residual + at : nullptr;
    const bool bound = to.act.op == Unary::relu || to.act.op == Unary::clip;
    if (bound) t.act = to.act;
    kernels.finish(t, sums + v * kChunk, kSplitColumns);
    // The rows of a part follow each other: one run of values is faster to activate than rows of 16.
    if (b.last() && !bound && to.act.op != Unary::none) elementwise_kernels().unary(to.act, t.c, t.c, part.rows * kChunk);
  }
}

}  // namespace

bool split_pixels_pay(std::int64_t pixels, std::int64_t count, std::int64_t pairs) {
  return split_pays(pixels, pairs * kSplitColumns, count * kChunk, kSplitPixels);
}

void multiply_split_pixels(const SplitPixels& from, const float* weights, std::int64_t pairs, const SplitResults& to) {
  const SplitKernels& split = *split_kernels();
  const GemmKernels& kernels = gemm_kernels();
  // Halves, so that all blocks but the last are whole steps of K.
  const Cuts halves(up_div(from.count, 2), kMostChunks / 2);
  const std::int64_t most = std::max<std::int64_t>(2, kRowChunks / (2 * halves.size(0)) / kSplitRows) * kSplitRows;
  const std::int64_t pixels = from.lines * from.width;
  const SplitScratch scratch(std::min(most, pixels), 2 * halves.size(0) * kChunk);
  const Cuts bands(up_div(pixels, kSplitRows), most / kSplitRows);
  for (std::int64_t band = 0; band < bands.parts; ++band) {
    const std::int64_t first = bands.begin(band) * kSplitRows, end = std::min(pixels, bands.begin(band + 1) * kSplitRows);
    for (std::int64_t i = 0; i < halves.parts; ++i) {
      const std::int64_t chunk = 2 * halves.begin(i), chunks = std::min(from.count, 2 * halves.begin(i + 1)) - chunk;
      const Block b{&from, weights, pairs, &to, chunk, chunks, first, end - first};
      const auto finish = [&](const SplitPart& p, const float* sums) { store(kernels, b, p, sums); };
      const auto floats = [&](std::int64_t column, std::int64_t columns) {
        for (std::int64_t row = 0; row < b.pixels; row += kSplitRows) {
          float sums[kSplitRows * kSplitColumns];
          const SplitPart part{row, std::min(kSplitRows, b.pixels - row), column, columns};
          plain_sums(b, part, sums);
          finish(part, sums);
        }
      };
      const SplitRows left = split_block(split, b, scratch.left);
      const std::int64_t columns = pairs * kSplitColumns;
      if (left.finite) {
        multiply_panels(split, left, b.pixels, {b.panel(0), from.count * kChunk * kSplitColumns, columns}, scratch, finish,
                        floats);
      } else {
        for (std::int64_t column = 0; column < columns; column += kSplitColumns) floats(column, kSplitColumns);
      }
    }
  }
}

}  // namespace sdx::cpu
