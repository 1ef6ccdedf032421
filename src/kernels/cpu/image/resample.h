#pragma once
// Resampling of planes by weighted sums along both axes: ONNX Resize, linear and cubic, with and without antialiasing.

#include <cstdint>

namespace sdx::cpu {

// The outputs of an axis: out[o] is the sum of weights[o * count + k] * in[first[o] + k] over k < count. first[o]
// lies in [0, in - count] and does not decrease.
template <class W>
struct AxisWeights {
  std::int64_t in, out, count;
  const std::int32_t* first;
  const W* weights;
};

// x is [planes, rows.in, columns.in], y [planes, rows.out, columns.out]. Dense, aligned to their elements; y must not overlap x.
// Thread-safe, split over current_pool(). Throws std::bad_alloc.
void resample_f32(const float* x, float* y, std::int64_t planes, const AxisWeights<float>& rows,
                  const AxisWeights<float>& columns);

// Sums are truncated, as the specification's reference does, after 1e-9 is added: weights add up to one only up to rounding. They
// saturate.
void resample_u8(const std::uint8_t* x, std::uint8_t* y, std::int64_t planes, const AxisWeights<double>& rows,
                 const AxisWeights<double>& columns);

}  // namespace sdx::cpu
