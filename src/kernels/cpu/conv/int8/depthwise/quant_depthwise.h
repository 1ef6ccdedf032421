#pragma once
// Depthwise convolutions of bytes with the channels last, of any shape; internal to this folder. Contract as in quant_nhwc.h.

#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/quant/quant.h"

namespace sdx::cpu {

// packed: from qnhwc_pack().
void qdepthwise_conv(const ConvShape& s, const void* x, bool x_signed, std::int32_t x_zero, const void* packed,
                     const QEpilogue& epilogue, void* y);

}  // namespace sdx::cpu
