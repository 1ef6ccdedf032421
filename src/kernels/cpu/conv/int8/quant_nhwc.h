#pragma once
// Products and convolutions of bytes with the channels last: images [N, spatial..., C] of u8 or s8 and matrices [m, k].
//
// Sums are exact int32 (they wrap modulo 2^32); the result goes through a QEpilogue, whose arrays are indexed by columns (output
// channels). Pixels are rows, output channels columns: a 1x1 convolution gathers nothing, any other copies runs of whole
// pixels. Contract as in quant.h. Scratch: up to 700 KB per computing thread, more when K exceeds 16 thousand.

#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/quant/quant.h"

namespace sdx::cpu {

// Padding counts as the zero point. y: [N, spatial..., out_channels] of the epilogue's type.
void qnhwc_conv(const ConvShape& shape, const void* x, bool x_signed, std::int32_t x_zero, const void* packed, bool wide,
                const QEpilogue& epilogue, void* y);

// A matrix product is a 1x1 convolution over m pixels; `packed` by qnhwc_pack of matrix_shape(k, n).
ConvShape matrix_shape(std::int64_t k, std::int64_t n);
struct QMatrix {
  const void* a = nullptr;
  bool is_signed = false;
  std::int64_t lda = 0;
  std::int64_t m = 0;
  std::int64_t k = 0;
  std::int32_t zero = 0;
};
void qnhwc_product(const QMatrix& a, std::int64_t n, const void* packed, bool wide, const QEpilogue& epilogue, void* c,
                   std::int64_t ldc);

}  // namespace sdx::cpu
