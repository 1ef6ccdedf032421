#pragma once
// The operands of the transforms of 3x3 convolutions; internal to this folder.

#include <cstdint>

namespace sdx::cpu {

// A tile of a 3x3 convolution in one block of channels.
struct ImageTile {
  std::int64_t rows = 0, columns = 0;  // of outputs to compute, each 1 .. t
  // The input of these outputs, rows row_step apart: rows [row0, row1) and columns [column0, column1) exist, the rest is 0.
  const float* x = nullptr;
  std::int64_t row_step = 0, row0 = 0, row1 = 0, column0 = 0, column1 = 0;
  // y: rows y_step apart.
  const float* bias = nullptr;
  const float* residual = nullptr;  // like y; null: none
  float lo = 0, hi = 0;
  float* y = nullptr;
  std::int64_t y_step = 0;
};

// Number of filters whose weights are transformed together: all their elements fill a third of a second-level cache. The gap
// after them keeps elements from falling into the same few sets of the first-level cache.
inline constexpr std::int64_t kWinogradFilters = 2048;
inline constexpr std::int64_t kWinogradStep = kWinogradFilters + 16;

}  // namespace sdx::cpu
