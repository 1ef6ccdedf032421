#pragma once
// Depthwise convolutions of bytes with the channels last, on planes and with at most 7x7 taps; internal to this folder. Contract
// as in quant_nhwc.h.

#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/quant/quant.h"

namespace sdx::cpu {

// Whether qdepthwise_plane_conv() supports this shape. Weights are packed for it only if it does.
bool qdepthwise_plane_takes(const ConvShape& shape);  // checks only channels and kernel
bool qdepthwise_plane_runs(const ConvShape& shape, const QEpilogue& epilogue);
struct QDepthwiseImage {
  const std::uint8_t* data;
  bool is_signed;
  std::int32_t zero;  // of padding
};
// Whether it can use quant_depthwise_vnni.h.
bool qdepthwise_plane_has_quads(const ConvShape& shape);
// weights: [taps][channels rounded up to 16]. quads: use quant_depthwise_vnni.h; the epilogue's bias is then for an image of
// unsigned bytes.
void qdepthwise_plane_conv(const ConvShape& shape, const QDepthwiseImage& x, const std::int16_t* weights, bool quads,
                           const QEpilogue& epilogue, std::uint8_t* y);

}  // namespace sdx::cpu
