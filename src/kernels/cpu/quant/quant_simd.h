#pragma once
// Per-target inner kernels of the 8-bit convolutions; internal to this folder.
//
// Operands hold pairs along K: A as int16 with its zero point subtracted, so |a| <= 255; B as s8, u8 shifted by 128. A
// multiply-add of int16 pairs into int32 is exact, unlike AVX2's u8 x s8 instructions, which saturate.

#include <cstdint>

#include "kernels/cpu/quant/quant.h"

namespace sdx::cpu {

struct QTile {
  const std::int16_t* a = nullptr;  // [pairs][m][2]
  const std::int8_t* b = nullptr;   // [pairs][nr][2]
  std::int64_t pairs = 0;
  std::int64_t m = 0;
  std::int64_t n = 0;
  const std::int32_t* row_sums = nullptr;  // of A; m values
  std::int32_t b_zero = 0;                 // as for B shifted to s8
  std::int64_t row = 0;                    // the tile's row in C, for the epilogue's arrays
  const QEpilogue* epilogue = nullptr;
  void* c = nullptr;  // the tile's corner
  std::int64_t ldc = 0;
};

struct QuantKernels {
  int mr;
  int nr;
  void (*tile)(const QTile& t);
  // Interleaves one K pair of a block, rows r0 and r1 (n bytes each, xored with `flip`), into panels that start at `out` and are
  // panel_step apart. `out` must be writable for n rounded up to nr columns, and the rows readable for 16 bytes more.
  void (*interleave)(const std::uint8_t* r0, const std::uint8_t* r1, std::uint8_t flip, std::int64_t n, std::int8_t* out,
                     std::int64_t panel_step);
  // Copies every second one of 2 n - 1 bytes.
  void (*halve)(const std::uint8_t* x, std::int64_t n, std::uint8_t* y);
  // Applies e to sums of its output channel (or row) `row` and stores them in y. Sums are floats below 2^24, and so exact.
  void (*narrow)(const float* sums, std::int64_t n, const QEpilogue& e, std::int64_t row, void* y);
  void (*quantize)(const float* x, void* y, bool is_signed, std::int64_t n, float scale, std::int32_t zero_point);
  void (*dequantize)(const void* x, bool is_signed, float* y, std::int64_t n, float scale, std::int32_t zero_point);
  void (*min_max)(const float* x, std::int64_t n, float* min, float* max);
};

const QuantKernels& quant_kernels();

}  // namespace sdx::cpu
