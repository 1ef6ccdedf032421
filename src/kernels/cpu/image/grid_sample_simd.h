#pragma once
// The per-target functions behind grid_sample.h; internal to this folder. No threading.

#include <cstdint>

#include "kernels/cpu/image/grid_sample.h"

namespace sdx::cpu {

// Positions prepared together, then used for each channel: 12 KB stay in the first-level cache. A multiple of all vectors.
inline constexpr std::int64_t kSampleBlock = 256;

// Two neighbours in each of two rows. What lies outside has weight 0.
struct SampleTaps {
  alignas(64) std::int64_t upper[kSampleBlock];  // bytes from the start of a plane to the left neighbour
  alignas(64) float upper_weights[2 * kSampleBlock];
  alignas(64) float lower_weights[2 * kSampleBlock];
};

struct GridSampleKernels {
  // grid: `count` positions; taps are written up to a multiple of the vectors, those beyond `count` valid and weightless.
  void (*prepare)(const GridSample& shape, const float* grid, std::int64_t count, SampleTaps& taps);
  // Samples one plane whose rows have `width` elements. False if a result is not a number.
  bool (*sample)(const float* plane, std::int64_t width, const SampleTaps& taps, std::int64_t count, float* y);
};

const GridSampleKernels& grid_sample_kernels();

}  // namespace sdx::cpu
