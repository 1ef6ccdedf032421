#pragma once
// Convolutions of bytes with several groups and the channels last, for machines with AVX512-VNNI; internal to this folder.
//
// A vector of 16 outputs spans groups if these are narrower: each of its lanes then takes the quad of input channels that its own
// group needs, so no product is wasted. Contract as in quant_nhwc.h.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/conv/int8/quant_nhwc_pack.h"
#include "kernels/cpu/quant/quant.h"

namespace sdx::cpu {

// Whether the machine and the groups' channels allow it: whole quads of inputs, and outputs that fill vectors or parts of them.
bool qgrouped_takes(const ConvShape& s, bool wide);
std::size_t qgrouped_packed_bytes(const ConvShape& s);
void qgrouped_pack(const ConvShape& s, const QWeights& w, void* packed);

struct QGroupedImage {
  const std::uint8_t* x = nullptr;
  bool is_signed = false;
  std::int32_t zero = 0;
};
void qgrouped_conv(const ConvShape& s, const QGroupedImage& image, const void* packed, const QEpilogue& epilogue, void* y);

}  // namespace sdx::cpu
