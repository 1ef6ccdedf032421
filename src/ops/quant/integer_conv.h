#pragma once
// Convolution of 8-bit tensors in 32-bit integers, shared by ConvInteger and the QLinearConvs.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include <sdx/tensor.hpp>

#include "ops/context.h"
#include "ops/conv/conv_geometry.h"

namespace sdx::ops {

struct IntegerConv {
  ConvGeometry geometry;
  const Tensor* x = nullptr;  // [N, C, spatial...]; int8 or uint8
  std::int32_t x_zero = 0;
  const Tensor* w = nullptr;         // [M, C/group, kernel...]
  std::vector<std::int32_t> w_zero;  // none, one, or one per output channel
};

// Takes sums of output channel `channel` of image `batch` for output positions [begin, begin + count). Called from several
// threads at once.
using ConvSink = std::function<void(std::int64_t batch, std::int64_t channel, std::int64_t begin, std::int64_t count,
                                    const std::int32_t* sums)>;

// Padding counts as the zero point. Sums wrap around in 32 bits. Calls `sink` for every output element once.
void integer_conv(const OpContext& c, const IntegerConv& conv, const ConvSink& sink);

// The zero points of w: none (null), one, or one for each of `channels`. Throws Error(invalid_model).
std::vector<std::int32_t> channel_zero_points(const Tensor* zero, DataType w, std::int64_t channels);

// The shape [N, spatial..., C] to [N, C, spatial...], and back.
template <class S>
S to_first(S s) {
  if (s.size() > 2) std::rotate(s.begin() + 1, s.end() - 1, s.end());
  return s;
}
template <class S>
S to_last(S s) {
  if (s.size() > 2) std::rotate(s.begin() + 1, s.begin() + 2, s.end());
  return s;
}
// The same for one-byte elements.
Tensor channels_first(const Tensor& bytes);
void channels_last(const std::uint8_t* from, const Shape& first_shape, std::uint8_t* to);

}  // namespace sdx::ops
