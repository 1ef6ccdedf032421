#pragma once
// Scale and zero point from the data's range. Source: ONNX DynamicQuantizeLinear-11.

#include <cstdint>

#include <sdx/dtype.hpp>

namespace sdx::ops {

struct DynamicScale {
  float scale = 1.0f;
  std::int32_t zero_point = 0;
};

// For uint8 and int8. The range always includes 0; no data, or only zeros, give scale 1 (ONNX Runtime) and the zero point of
// that range.
DynamicScale dynamic_scale(const float* data, std::int64_t count, DataType target);
// The scale of values from `low` <= 0 to `high` >= 0.
DynamicScale dynamic_scale(float low, float high, DataType target);

// Whether DynamicQuantizeLSTM rounds the hidden states of all sequences to one grid. Source: ONNX Runtime's
// UniDirectionalLstm::SetNumThreads: other batches are split between threads, each of which rounds those of its part.
inline bool states_share_grid(std::int64_t batch, std::int64_t hidden) { return batch < 2 || (batch <= 4 && hidden > 256); }

}  // namespace sdx::ops
