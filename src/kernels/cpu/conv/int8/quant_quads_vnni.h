#pragma once
// Multiplies rows of unsigned bytes by panels of quads of signed bytes with vpdpbusd and stores bytes; internal to this folder.
// neon/quant_quads_neon.h does the same on Arm, with rows of signed bytes.
//
// A tile of 12 rows and 32 columns keeps 24 sums in registers. They start from the biases and leave as bytes, so a product with
// few channels, and little to add up, is not memory-bound.

#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/conv/int8/quant_gather_simd.h"
#include "kernels/cpu/quant/quant.h"

namespace sdx::cpu {

constexpr std::int64_t kQuadRows = 12,
                       kQuadColumns = 32;  // for AVX-512; tiles of AVX2 have 6 rows and 16 columns, of NEON 8 and 8

// Converts sums of 32 columns to bytes; columns that do not exist may hold any finite values.
struct QQuadFinish {
  alignas(64) std::int32_t bias[kQuadColumns] = {};
  alignas(64) float scale[kQuadColumns] = {};
  float low = 0, high = 0;  // bounds before the zero point is added
  std::int32_t zero_point = 0;
  bool is_signed = false;
  bool clamp = true;  // false: packing saturates at these bounds anyway, and every scaled sum fits an int32
};

struct QQuadPanel {
  const std::uint8_t* a = nullptr;  // m rows, `stride` bytes apart
  std::int64_t stride = 0;
  std::int64_t m = 0;
  std::int64_t quads = 0;
  const std::int8_t* b = nullptr;  // [quads][columns of a panel][4]
  const QQuadFinish* finish = nullptr;
  std::uint8_t* y = nullptr;  // [m][columns], ldc apart
  std::int64_t ldc = 0;
  std::int64_t columns = kQuadColumns;
  // Memory needed next, prefetched piece by piece.
  const char* ahead = nullptr;
  std::int64_t ahead_bytes = 0;
};

// A convolution to gather rows of bytes from.
struct QQuadWindow {
  QSource source;              // its shape is set, with one group
  std::int64_t row_bytes = 0;  // from one row to the next
};

struct QQuadKernels {
  std::int64_t columns;  // of a panel
  void (*panel)(const QQuadPanel& p);
  // Gathers rows [first, first + count) into `rows` as bytes with the sign that the panel needs; padding holds the zero point.
  // May overwrite up to 63 bytes after the last row, and any bytes between rows.
  void (*gather)(const QQuadWindow& w, std::int64_t first, std::int64_t count, std::uint8_t* rows);
  bool signed_rows = false;
};
constexpr std::int64_t kQuadSlack = 64;

// Kernels for AVX512-VNNI, and for AVX-VNNI on 256 bits. Null if not compiled; they do not check whether the machine has the
// instructions.
const QQuadKernels* qquad_avx512_kernels();
const QQuadKernels* qquad_avx2_kernels();

}  // namespace sdx::cpu
