#pragma once
// Weights for quant_nhwc.h, in the order that the machine's instructions want.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"

namespace sdx::cpu {

// True where there is a direct kernel for one input and one output channel per group.
bool qnhwc_is_depthwise(const ConvShape& shape);

// Weights as given: element (column, k) of group g, [columns, k] each, dense, k = input channel first and then the kernel's taps.
struct QWeights {
  const void* data = nullptr;
  bool is_signed = true;
  const std::int32_t* zero_points = nullptr;  // one, or one per output channel; null: 0
  std::int64_t zero_point_count = 0;
  bool transposed = false;  // a matrix given as [k, columns]
  // Most of the activations they meet lie less than 128 above the least value of their type, as behind a Relu: a hint.
  bool low_activations = false;
  bool for_convolution = false;  // packed for qnhwc_conv() alone
};
// The order in which panels of such weights lie, or are tried to: packed weights of another order are of no use.
int qnhwc_order(const ConvShape& shape, const QWeights& weights, bool wide);

// The weights minus their zero points take 8 bits each where all of them fit, else 16. Without data: whether 16 may be needed.
bool qnhwc_is_wide(const ConvShape& shape, const QWeights& weights);
// Extents, strides, padding and batch do not matter to packing. Valid only under the instruction set it was made for.
std::size_t qnhwc_packed_bytes(const ConvShape& shape, const QWeights& weights, bool wide);
void qnhwc_pack(const ConvShape& shape, const QWeights& weights, bool wide, void* packed);

}  // namespace sdx::cpu
