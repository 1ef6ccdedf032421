#pragma once
// Reads weights for packing; internal to this folder.

#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/conv/int8/quant_nhwc_pack.h"

namespace sdx::cpu {

// One output channel's weights, k of them, minus their zero point.
class Column {
 public:
  Column(const ConvShape& s, const QWeights& w, std::int64_t column, std::int64_t k)
      : data_(static_cast<const std::uint8_t*>(w.data) + (w.transposed ? column : column * k)),
        step_(w.transposed ? s.out_channels : 1),
        flip_(w.is_signed ? 0x80 : 0),
        // (v ^ 128) - 128 is the signed value of a byte.
        zero_(flip_ + (w.zero_points == nullptr ? 0 : w.zero_points[w.zero_point_count > 1 ? column : 0])) {}
  std::int32_t operator[](std::int64_t i) const { return (data_[i * step_] ^ flip_) - zero_; }
  const std::uint8_t* data() const { return data_; }
  std::int64_t step() const { return step_; }
  std::int32_t flip() const { return flip_; }
  std::int32_t zero() const { return zero_; }

 private:
  const std::uint8_t* data_;
  std::int64_t step_;
  std::int32_t flip_, zero_;
};

}  // namespace sdx::cpu
