#pragma once
// Products of int16 rows with a panel of 16 columns, whose sums become bytes in registers, under AVX2; internal to this folder.
// See quant_nhwc_simd.h for the rows and panels.

#include <cstdint>

#include "kernels/cpu/conv/int8/quant_nhwc_simd.h"

namespace sdx::cpu {

struct QTiles {
  QRows rows;  // any m; with `add` its sums are read, never written
  bool crossed = false;
  // For a single row, not crossed, without `add`: the panel as bytes, widened on the way, instead of rows.b.
  const std::int8_t* narrow = nullptr;
  const QEpilogue* epilogue = nullptr;  // output is bytes
  std::int64_t column = 0;              // the panel's first; all 16 exist
  std::uint8_t* y = nullptr;            // [m][16], ldc apart
  std::int64_t ldc = 0;
  // Memory needed next, prefetched piece by piece.
  const char* ahead = nullptr;
  std::int64_t ahead_bytes = 0;
  bool half = false;  // only the first 8 of the columns count
};

using QTilesKernel = void (*)(const QTiles&);
QTilesKernel qtiles_kernel();  // null if not compiled

}  // namespace sdx::cpu
