#pragma once
// Weights and biases in front of DequantizeLinear.

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "quantize/model/edit.h"

namespace sdx::quantize {

struct StoredFloats {
  ValueId floats = kNoValue;  // what DequantizeLinear gives
  std::vector<float> scales;  // one, or one for each channel
};

class ConstantWriter {
 public:
  ConstantWriter(Editor& edit, const StaticQuantOptions& options) : edit_(edit), o_(options) {}

  // Stores a constant in the type of weights. If `bias` in steps of x_scale times the weights' scale would not fit into int32,
  // these scales grow.
  StoredFloats weights(ValueId constant, std::optional<std::int64_t> axis, const Tensor* bias, float x_scale);
  // Stores a constant in the type of activations, with one scale.
  StoredFloats operand(ValueId constant);
  // int32, whose scales are x_scale times those of the weights.
  ValueId bias(ValueId constant, const Tensor& values, float x_scale, const std::vector<float>& scales);

 private:
  StoredFloats write(ValueId constant, const QuantizedTensor& q);
  ValueId dequantize(const std::string& name, std::vector<ValueId> inputs, std::optional<std::int64_t> axis, DataType to);
  bool grow(std::vector<QuantParams>& params, const Tensor& bias, float x_scale) const;

  Editor& edit_;
  const StaticQuantOptions& o_;
  std::map<std::tuple<ValueId, std::int64_t, int>, StoredFloats> stored_;
};

}  // namespace sdx::quantize
