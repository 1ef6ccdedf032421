#pragma once
// Multiplies the pixels of a grouped convolution by its weights with vpdpbusd; internal to this folder.

#include <cstdint>

#include "kernels/cpu/conv/int8/quant_quads_vnni.h"

namespace sdx::cpu {

constexpr std::int64_t kGroupedRows = 12;

// Pixels times one panel of 32 output channels, in two vectors of 16.
struct QGroupedPanel {
  const std::uint8_t* const* pixels = nullptr;  // [taps][m]: what each tap of each output reads
  std::int64_t m = 0, taps = 0;
  std::int64_t quads = 0;               // of a group's input channels
  const std::int8_t* b = nullptr;       // [taps][quads][32][4]
  std::int64_t offset[2] = {};          // of each vector's first input channel
  const std::int32_t* order = nullptr;  // [quads][16]: which quad after the offset each output needs; null: the same one for all
  std::uint16_t there[2] = {};          // with `order`: the quads that each vector needs, as bits
  bool flip = false;                    // pixels are signed
  const QQuadFinish* finish = nullptr;  // bytes only
  std::uint8_t* y = nullptr;            // bytes only: [m][columns], ldc apart
  std::int64_t ldc = 0;
  std::int64_t columns = kQuadColumns;  // how many of the 32 exist
  std::int32_t* sums = nullptr;         // if set: [m][32], without biases, instead of bytes
};

// Null if not compiled; it does not check whether the machine has AVX512-VNNI.
using QGroupedFn = void (*)(const QGroupedPanel& p);
QGroupedFn qgrouped_avx512();

}  // namespace sdx::cpu
