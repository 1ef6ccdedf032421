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
  float* sums;  // [32][32]

  SplitScratch(std::int64_t rows, std::int64_t k) {
    const std::int64_t block = split_steps(k) * kSplitBlock, blocks = up_div(rows, kSplitRows);
    auto* const floats = thread_scratch(5, to_size(kSplitRows * kSplitColumns + (blocks + 2) * block / 2));
    sums = floats;
    left = reinterpret_cast<std::uint16_t*>(floats + kSplitRows * kSplitColumns);
    right[0] = left + blocks * block;
    right[1] = right[0] + block;
  }
};

// Panels [k][32] of `columns` columns in all, `step` floats apart.
struct SplitPanels {
  const float* b;
  std::int64_t step, columns;
};

// finish(row, rows, column, columns): that part's products are in scratch.sums, rows 32 apart. floats(column, columns): computes
// that panel otherwise, since it has an infinity or NaN. While one panel is multiplied, the next one is split and the one after
// it prefetched.
template <class Finish, class Floats>
void multiply_panels(const SplitKernels& split, const SplitRows& left, std::int64_t rows, const SplitPanels& panels,
                     const SplitScratch& scratch, Finish&& finish, Floats&& floats) {
  const std::int64_t steps = split_steps(left.k), all = steps * (kSplitStep / 2);
  const std::int64_t pairs = up_div(kSplitStep / 2, up_div(rows, kSplitRows));
  const TileScope tiles(TileConfig::whole());
  SplitPanel next{panels.b, left.k, scratch.right[0], panels.step};
  split.split_panel(next, all);
  for (std::int64_t column = 0, turn = 1; column < panels.columns; column += kSplitColumns, turn ^= 1) {
    const SplitPanel now = next;
    const std::int64_t columns = std::min(kSplitColumns, panels.columns - column);
    next = {now.b + panels.step, left.k, scratch.right[turn], panels.step};
    if (column + kSplitColumns >= panels.columns) next.done = all;
    if (!now.finite) floats(column, columns);
    for (std::int64_t row = 0; row < rows && now.finite; row += kSplitRows) {
      const std::int64_t count = std::min(kSplitRows, rows - row);
      const std::uint16_t* const a = left.to + row / kSplitRows * steps * kSplitBlock;
      split.multiply({a, now.to, steps, count > 16, columns > 16, scratch.sums}, next, pairs);
      finish(row, count, column, columns);
    }
    split.split_panel(next, all);
  }
}

}  // namespace sdx::cpu
