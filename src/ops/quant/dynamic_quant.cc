#include "ops/quant/dynamic_quant.h"

#include "ops/quant/quant_codec.h"

namespace sdx::ops {

DynamicScale dynamic_scale(const float* data, std::int64_t count, DataType target) {
  float low = 0.0f;
  float high = 0.0f;
  for (std::int64_t i = 0; i < count; ++i) {
    low = data[i] < low ? data[i] : low;
    high = data[i] > high ? data[i] : high;
  }
  return dynamic_scale(low, high, target);
}

DynamicScale dynamic_scale(float low, float high, DataType target) {
  const QuantRange range = quant_range(target);
  DynamicScale out;
  if (high != low) out.scale = (high - low) / static_cast<float>(range.high - range.low);
  out.zero_point = requantize(static_cast<float>(range.low) - low / out.scale, 0, range);
  return out;
}

}  // namespace sdx::ops
