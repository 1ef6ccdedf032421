#pragma once
// Separable resampling: where each output position of one axis lies in the input, and which inputs it weighs. Source: ONNX
// Resize-19.

#include <cstdint>
#include <vector>

#include <sdx/tensor.hpp>

#include "base/cancel.h"
#include "ops/tensor/movement.h"

namespace sdx::ops {

enum class ResampleMode { nearest, linear, cubic };
enum class CoordinateMode {
  half_pixel,
  half_pixel_symmetric,
  pytorch_half_pixel,
  align_corners,
  asymmetric,
  tf_half_pixel_for_nn,
  tf_crop_and_resize
};
// `simple` is what opset 10 and Upsample do: rounding down when enlarging, up when shrinking.
enum class NearestMode { round_prefer_floor, round_prefer_ceil, floor, ceil, simple };

struct ResampleOptions {
  ResampleMode mode = ResampleMode::nearest;
  CoordinateMode coordinates = CoordinateMode::half_pixel;
  NearestMode nearest = NearestMode::round_prefer_floor;
  float cubic_a = -0.75F;
  float extrapolation = 0;
  bool exclude_outside = false;
  bool antialias = false;
};

struct ResampleAxis {
  std::int64_t in = 0;
  std::int64_t out = 0;
  double scale = 1;  // may differ from out / in: out is rounded
  double roi_start = 0;
  double roi_end = 1;
};

// True when the axis is copied unchanged.
bool is_unchanged(const ResampleAxis& axis, const ResampleOptions& options);

// Input positions for nearest resampling; -1: the extrapolation value.
Ints nearest_map(const ResampleAxis& axis, const ResampleOptions& options);
// The input position of one output position.
std::int64_t nearest_source(const ResampleAxis& axis, const ResampleOptions& options, std::int64_t position);

// The inputs [first[o], first[o] + count) that output o weighs, as `count` weights from weights[o * count] on.
// first is -1 where the extrapolation value stands.
struct Taps {
  std::int64_t count = 0;
  Ints first;
  std::vector<double> weights;
};
// Precondition: axis.in > 0. Throws Error(runtime_failure) when the scale is too small for the extents.
Taps weighted_taps(const ResampleAxis& axis, const ResampleOptions& options);

// Resamples all axes of a float32 or float64 tensor; linear and cubic only. `stop` is checked between axes.
Tensor resample(const Tensor& in, const std::vector<ResampleAxis>& axes, const ResampleOptions& options,
                const StopCondition& stop);

}  // namespace sdx::ops
