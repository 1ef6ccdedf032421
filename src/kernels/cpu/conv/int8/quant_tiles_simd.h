#pragma once
// Multiplies int16 rows by a panel of 16 columns and turns the sums into bytes in registers, under AVX2; internal to this folder.
// See quant_nhwc_simd.h for the rows and panels.

#include <cstdint>

#include "kernels/cpu/conv/int8/quant_nhwc_simd.h"

namespace sdx::cpu {

struct QTiles {
  QRows rows;  // any m; its sums are read if `add` is set, and never written
  bool crossed = false;
  // Only for a single row, not crossed and without `add`: the panel as bytes, widened in registers, in place of rows.b.
  const std::int8_t* narrow = nullptr;
  const QEpilogue* epilogue = nullptr;  // output is bytes
  std::int64_t column = 0;              // the panel's first; all 16 exist
  std::uint8_t* y = nullptr;            // [m][16], ldc apart
  std::int64_t ldc = 0;
  // Memory needed next, prefetched piece by piece.
  const char* ahead = nullptr;
  std::int64_t ahead_bytes = 0;
  bool half = false;  // only the first 8 columns exist
};

using QTilesKernel = void (*)(const QTiles&);
QTilesKernel qtiles_kernel();  // null if not compiled

}  // namespace sdx::cpu
