#pragma once
// Per-target inner loops of quant_nhwc.cc; internal to this folder.
//
// Both operands are int16 when they are multiplied: bytes are widened and their zero points subtracted, once for many uses, into
// buffers in the first- and second-level caches. A multiply-add of int16 pairs into int32 is exact; AVX2's multiply-add of bytes
// saturates, and needs a second multiplication to widen its sums.
//
// Crossed products (Winograd 1968, "A new algorithm for inner product"): a0 b0 + a2 b2 = (a0 + b2) (a2 + b0) - a0 a2 - b0 b2. The
// last two terms depend only on a row or a column. Two additions replace a multiplication and an addition. Cores with four vector
// pipes, of which two multiply, then find a free pipe for both kinds of instruction: 31.9 instead of 26.2 products per cycle on
// Zen 4. Sums of two bytes fit int16; sums of transformed images do not.

#include <cstdint>

#include "kernels/cpu/quant/quant.h"

namespace sdx::cpu {

struct QRows {
  const std::int16_t* a = nullptr;  // m rows, `stride` elements apart
  std::int64_t stride = 0;
  const std::int16_t* b = nullptr;  // [pairs][nr][2]
  std::int64_t pairs = 0;
  std::int64_t m = 0;
  std::int32_t* sums = nullptr;  // [m][nr], 64-byte aligned
  bool add = false;              // adds to what `sums` holds
  bool half = false;             // the second half of the columns is not needed
  // For crossed products with `add` false: the amounts to subtract for each row and each column.
  const std::int32_t* row_cross = nullptr;
  const std::int32_t* column_cross = nullptr;
};

struct QNhwcKernels {
  int mr;
  int nr;  // also the number of channels in a block of depthwise weights
  void (*product)(const QRows& t);
  // The same by crossed products, for rows and weights below 2^14 in magnitude and an even number of pairs; null if not faster.
  int crossed_mr;
  void (*crossed)(const QRows& t);
  // out[i] = the sum over quads of a0 a2 + a1 a3 of row i; for crossed products only.
  void (*cross_rows)(const std::int16_t* rows, std::int64_t count, std::int64_t stride, std::int64_t pairs, std::int32_t* out);
  // Widens n bytes; n is a multiple of 2 nr.
  void (*widen_panel)(const std::int8_t* b, std::int64_t n, std::int16_t* out);
  // Applies the epilogue to sums [m][nr] of columns [column, column + n) and writes them to c, whose rows are ldc elements apart.
  void (*finish)(const QEpilogue& e, const std::int32_t* sums, std::int64_t m, std::int64_t n, std::int64_t column, void* c,
                 std::int64_t ldc);
  // qnhwc_vnni_quads(), qnhwc_avx_vnni_quads() or qnhwc_neon_quads() if the machine has the instructions, else null.
  void (*quads)(const QRows& t);
  // The same for bounded quads (quant_bounded.h); null if the machine has better instructions, or lacks AVX2.
  void (*bounded)(const QRows& t);
};

const QNhwcKernels& qnhwc_kernels();

}  // namespace sdx::cpu
