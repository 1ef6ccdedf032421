#pragma once
// ONNX GridSample of NCHW float images, linear, with zeros or the border beyond the edges.

#include <cstdint>

namespace sdx::cpu {

struct GridSample {
  std::int64_t batch, channels, height, width;  // of x; height and width at least 2
  std::int64_t positions;                       // for each item of the batch
  bool align_corners, border;
};

// x is [batch, channels, height, width]; grid [batch, positions, 2], x before y; y [batch, channels, positions]. Dense, aligned
// to floats; y must not overlap the others. Positions and weights are computed in double. What lies outside contributes nothing,
// even if it would be infinity or NaN times zero. Thread-safe, split over current_pool().
void grid_sample_f32(const GridSample& shape, const float* x, const float* grid, float* y);

}  // namespace sdx::cpu
