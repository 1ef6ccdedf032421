#pragma once
// Depthwise 3x3 convolutions of bytes with the channels last, under AVX2 and AVX-512; internal to this folder. Contract as in
// quant_nhwc.h.

#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/quant/quant.h"

namespace sdx::cpu {

// Whether the two below serve this shape. Weights of others have no place in packed ones.
bool qdepthwise3_takes(const ConvShape& shape);  // looks at channels and kernel alone
bool qdepthwise3_runs(const ConvShape& shape, const QEpilogue& epilogue);
// weights: [9][channels rounded up to 16].
void qdepthwise3_conv(const ConvShape& shape, const std::uint8_t* x, bool x_signed, std::int32_t x_zero,
                      const std::int16_t* weights, const QEpilogue& epilogue, std::uint8_t* y);

}  // namespace sdx::cpu
