#pragma once
// Per-target inner loops of quant_bytes.cc; internal to this folder.

#include <cstdint>

#include "kernels/cpu/quant/quant_bytes.h"

namespace sdx::cpu {

struct QuantBytesKernels {
  void (*add)(const QAdd& add, const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* y, std::int64_t n);
  void (*mul)(const QMul& mul, const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* y, std::int64_t n);
  void (*map)(const std::uint8_t* table, const std::uint8_t* x, std::uint8_t* y, std::int64_t n);
  // y[i * n + c] = the largest of the taps' bytes i * step + c, for i below width; count >= 1.
  void (*largest)(const std::uint8_t* const* taps, std::int64_t count, bool is_signed, std::int64_t step, std::int64_t width,
                  std::int64_t n, std::uint8_t* y);
  // y[i * n + c] = the average of the taps' bytes i * step + c, for i below width; divisor > 0.
  void (*average)(const QAverage& average, const std::uint8_t* const* taps, std::int64_t count, std::int64_t divisor,
                  std::int64_t step, std::int64_t width, std::int64_t n, std::uint8_t* y);
  // sums[c] += x[p * step + c] over all pixels.
  void (*sum)(const std::uint8_t* x, bool is_signed, std::int64_t pixels, std::int64_t step, std::int64_t n, std::int32_t* sums);
};

const QuantBytesKernels& quant_bytes_kernels();

}  // namespace sdx::cpu
