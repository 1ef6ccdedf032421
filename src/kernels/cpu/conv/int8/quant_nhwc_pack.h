#pragma once
// Packs weights for quant_nhwc.h in the order that the machine's instructions need.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"

namespace sdx::cpu {

// Whether the shape has several groups of one input and one output channel each, for which there are direct kernels.
bool qnhwc_is_depthwise(const ConvShape& shape);

// Weights as given, dense: [columns, k] for each group, where k runs over input channels and, within each, the kernel's taps.
struct QWeights {
  const void* data = nullptr;
  bool is_signed = true;
  const std::int32_t* zero_points = nullptr;  // one, or one per output channel; null: 0
  std::int64_t zero_point_count = 0;
  bool transposed = false;  // a matrix given as [k, columns]
  // A hint: most activations are less than 128 above the lowest value of their type, as after a Relu.
  bool low_activations = false;
  bool for_convolution = false;  // packed only for qnhwc_conv()
};
// The order of panels for such weights; kOctets only means that packing tries it. Packed weights in another order cannot be used.
int qnhwc_order(const ConvShape& shape, const QWeights& weights, bool wide);

// Whether weights minus their zero points need 16 bits because some do not fit 8. Without data: whether they may need 16.
bool qnhwc_is_wide(const ConvShape& shape, const QWeights& weights);
// Packing does not depend on extents, strides, padding and batch. Valid only under the instruction set it was made for.
std::size_t qnhwc_packed_bytes(const ConvShape& shape, const QWeights& weights, bool wide);
void qnhwc_pack(const ConvShape& shape, const QWeights& weights, bool wide, void* packed);

}  // namespace sdx::cpu
