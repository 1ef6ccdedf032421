#pragma once
// Depthwise convolutions of bytes with the channels last, of any shape, per target; internal to this folder.

#include <cstdint>

#include "kernels/cpu/quant/quant.h"

namespace sdx::cpu {

// One output row of a depthwise convolution.
struct QDepthwiseRow {
  const std::uint8_t* const* taps = nullptr;  // [width][taps rounded up to even]: the pixel that each tap reads
  std::int64_t taps_count = 0;                // even
  bool is_signed = false;
  std::int64_t channels = 0;
  std::int64_t width = 0;
  const std::int16_t* weights = nullptr;  // [channels rounded up to 2 lanes] blocks of [taps / 2][2 lanes][2]
  std::int32_t* sums = nullptr;           // [channels rounded up to 2 lanes], scratch
  const QEpilogue* epilogue = nullptr;
  char* y = nullptr;  // [width][channels] of the epilogue's type
};

struct QDepthwiseKernels {
  void (*row)(const QDepthwiseRow& r);
};

const QDepthwiseKernels& qdepthwise_kernels();

}  // namespace sdx::cpu
