#pragma once
// Weights for quant_nhwc.h, in the order that the machine's instructions need.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"

namespace sdx::cpu {

// Whether there is a direct kernel, for one input and one output channel per group.
bool qnhwc_is_depthwise(const ConvShape& shape);

// Weights as given: element (column, k) of group g, [columns, k] each, dense, k = input channel first and then the kernel's taps.
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
// The order of panels for such weights, or the order to try: packed weights in another order cannot be used.
int qnhwc_order(const ConvShape& shape, const QWeights& weights, bool wide);

// Weights minus their zero points take 8 bits each if all fit, else 16. Without data: whether 16 may be needed.
bool qnhwc_is_wide(const ConvShape& shape, const QWeights& weights);
// Packing does not depend on extents, strides, padding and batch. Valid only under the instruction set it was made for.
std::size_t qnhwc_packed_bytes(const ConvShape& shape, const QWeights& weights, bool wide);
void qnhwc_pack(const ConvShape& shape, const QWeights& weights, bool wide, void* packed);

}  // namespace sdx::cpu
