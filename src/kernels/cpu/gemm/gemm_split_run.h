#pragma once
// One block of rows, split, times panels of columns: for products of matrices and for convolutions.

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/gemm/gemm_split.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"
#include "kernels/cpu/simd/tiles.h"

namespace sdx::cpu {

// Memory of this thread for blocks of up to `rows` rows and `k` steps of K, until the next one is made.
struct SplitScratch {
  std::uint16_t* left;
  std::uint16_t* right[2];
  float* sums[2];  // [32][32]

  SplitScratch(std::int64_t rows, std::int64_t k) {
    const std::int64_t block = split_steps(k) * kSplitBlock, blocks = up_div(rows, kSplitRows);
    auto* const floats = thread_scratch(5, to_size(2 * kSplitRows * kSplitColumns + (blocks + 2) * block / 2));
    sums[0] = floats;
    sums[1] = floats + kSplitRows * kSplitColumns;
    left = reinterpret_cast<std::uint16_t*>(floats + 2 * kSplitRows * kSplitColumns);
    right[0] = left + blocks * block;
    right[1] = right[0] + block;
  }
};

// Panels [k][32] of `columns` columns in all, `step` floats apart.
struct SplitPanels {
  const float* b;
  std::int64_t step, columns;
};

// A part of the results.
struct SplitPart {
  std::int64_t row, rows, column, columns;
};

// finish(part, sums): that part's products, rows 32 apart. floats(column, columns): computes that panel otherwise, since it has
// an infinity or NaN. While one panel is multiplied, the next one is split and the one after it prefetched; and while one block's
// last products are under way, the one before is finished.
template <class Finish, class Floats>
void multiply_panels(const SplitKernels& split, const SplitRows& left, std::int64_t rows, const SplitPanels& panels,
                     const SplitScratch& scratch, Finish&& finish, Floats&& floats) {
  const std::int64_t steps = split_steps(left.k);
  const TileScope tiles(TileConfig::whole());
  SplitPanel next{panels.b, left.k, scratch.right[0], panels.step};
  split.split_panel(next, next.left());
  const std::int64_t pairs = up_div(kSplitStep / 2, up_div(rows, kSplitRows));
  SplitPart before{};
  int turn = 0;
  for (std::int64_t column = 0, panel = 1; column < panels.columns; column += kSplitColumns, panel ^= 1) {
    const SplitPanel now = next;
    const std::int64_t columns = std::min(kSplitColumns, panels.columns - column);
    const bool last = column + kSplitColumns >= panels.columns;
    next = last ? SplitPanel{} : SplitPanel{now.b + panels.step, left.k, scratch.right[panel], panels.step};
    for (std::int64_t row = 0; row < rows && now.finite; row += kSplitRows) {
      const SplitPart part{row, std::min(kSplitRows, rows - row), column, columns};
      const std::uint16_t* const a = left.to + row / kSplitRows * steps * kSplitBlock;
      split.multiply({a, now.to, steps, part.rows > 16, columns > 16, scratch.sums[turn]}, next, pairs);
      turn ^= 1;
      if (before.rows > 0) finish(before, scratch.sums[turn]);
      before = part;
    }
    if (!now.finite) floats(column, columns);
    split.split_panel(next, next.left());
  }
  if (before.rows > 0) finish(before, scratch.sums[turn ^ 1]);
}

}  // namespace sdx::cpu
