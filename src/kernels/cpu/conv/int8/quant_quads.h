#pragma once
// Products of bytes and panels of quads (quant_nhwc_layout.h) for machines with vpdpbusd or SDOT; internal to this folder.

#include <cstdint>

#include "kernels/cpu/conv/int8/quant_gather_simd.h"
#include "kernels/cpu/conv/int8/quant_nhwc_layout.h"
#include "kernels/cpu/conv/int8/quant_quads_image.h"
#include "kernels/cpu/conv/int8/quant_quads_vnni.h"
#include "kernels/cpu/quant/quant.h"

namespace sdx::cpu {

struct QQuadProduct {
  QSource source;
  std::int64_t n = 0;
  const std::int8_t* panels = nullptr;
  QEpilogue epilogue;  // its bias includes the zero point's share
  void* c = nullptr;
  std::int64_t ldc = 0;
  const nhwc::ExcessTables* excess = nullptr;  // of bounded quads
  const QQuadImage* image = nullptr;  // if set, rows are read from it: one for each of its outputs; null: rows of the source
};

// What is added to each byte of rows of this sign before it is multiplied, modulo 256: 128 if the kernels need the other sign.
std::int32_t qquad_shift(bool is_signed);
// Converts sums of columns [column, column + n), at most 32, to bytes.
QQuadFinish qquad_finish(const QEpilogue& e, std::int64_t column, std::int64_t n);
// Whether qquad_block() multiplies rows of k bytes by tiles of 32 rows, if there are enough rows.
bool qquad_by_tiles(std::int64_t k);
// Computes rows [m0, m1) of panels [p0, p1) on this thread.
void qquad_block(const QQuadProduct& g, std::int64_t m0, std::int64_t m1, std::int64_t p0, std::int64_t p1);

}  // namespace sdx::cpu
