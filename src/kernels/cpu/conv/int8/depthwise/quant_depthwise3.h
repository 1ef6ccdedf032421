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
struct QDepthwiseImage {
  const std::uint8_t* data;
  bool is_signed;
  std::int32_t zero;  // of padding
};
// weights: [9][channels rounded up to 16]. quads: by quant_depthwise_vnni.h, where the machine has them; the epilogue's bias is
// then that of an image of unsigned bytes.
bool qdepthwise3_has_quads();
void qdepthwise3_conv(const ConvShape& shape, const QDepthwiseImage& x, const std::int16_t* weights, bool quads,
                      const QEpilogue& epilogue, std::uint8_t* y);

}  // namespace sdx::cpu
