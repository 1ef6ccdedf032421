#pragma once
// Scales, zero points, and tensors in few bits.

#include <cstdint>
#include <optional>
#include <sdx/quantize.hpp>
#include <vector>

namespace sdx::quantize {

// The integers of a type. reduce_range: one bit less (of 8 bits). symmetric: as many below 0 as above. Of float8: the largest
// values.
struct CodeRange {
  double low = 0, high = 0;
};
CodeRange code_range(QuantType type, bool symmetric, bool reduce_range);

// real = (code - zero) * scale
struct QuantParams {
  float scale = 1;
  std::int64_t zero = 0;
};

struct Range {
  double low = 0, high = 0;
};

// The smallest scale whose codes span the range and 0. `least`: no range is narrower.
QuantParams params_of(Range range, QuantType type, bool symmetric, bool reduce_range, std::optional<float> least = {});
// Parameters for uint8 whose zero point is 0 if the range begins at 0, else 128.
QuantParams restricted_params_of(Range range, std::optional<float> least = {});

// A tensor in few bits. Scales and zero points are scalars, or vectors along `axis`.
struct QuantizedTensor {
  Tensor codes, scale, zero;
  std::optional<std::int64_t> axis;
};

struct WeightSettings {
  QuantType type = QuantType::qint8;
  bool symmetric = true, reduce_range = false;
  std::optional<std::int64_t> axis;  // along which each index has a scale of its own
  std::optional<float> least_range;
  std::vector<Range> ranges;  // instead of the tensor's own: one, or one for each index along `axis`
};
// A float tensor (of 32, 16 or 64 bits) into a type's nearest codes; its scales have float32, or float16 for a tensor of that.
// Throws Error(invalid_argument) for elements that are not finite.
QuantizedTensor quantize_tensor(const Tensor& weights, const WeightSettings& settings);
// Quantises with given scales and zero points: one, or one for each index along `axis`.
QuantizedTensor quantize_tensor(const Tensor& weights, QuantType type, std::optional<std::int64_t> axis,
                                const std::vector<QuantParams>& params);

// The scale as a float type has it: never 0.
float scale_in(DataType type, float scale);
Tensor float_scalar(float value, DataType type = DataType::float32);
// Returns `value` as a scalar of the type.
Tensor code_scalar(QuantType type, std::int64_t value);

}  // namespace sdx::quantize
