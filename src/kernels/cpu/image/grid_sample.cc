#include "kernels/cpu/image/grid_sample.h"

#include <algorithm>
#include <cmath>

#include "base/thread_pool.h"
#include "kernels/cpu/image/grid_sample_simd.h"

namespace sdx::cpu {
namespace {

struct Place {
  std::int64_t base;
  double fraction;
};

Place place_of(float normalized, std::int64_t extent, const GridSample& s) {
  const auto n = static_cast<double>(extent), g = static_cast<double>(normalized);
  double v = s.align_corners ? (g + 1) / 2 * (n - 1) : ((g + 1) * n - 1) / 2;
  if (!std::isfinite(v)) v = -2;
  v = s.border ? std::clamp(v, 0.0, n - 1) : std::clamp(v, -4.0, n + 4);
  const double base = std::floor(v);
  return {static_cast<std::int64_t>(base), v - base};
}

// One position, without the taps that lie outside. A result may be no number only because such a tap, which weighs nothing,
// shares its place with an element that is not finite.
float sample_inside(const GridSample& s, const float* plane, const float* position) {
  const Place across = place_of(position[0], s.width, s), down = place_of(position[1], s.height, s);
  double sum = 0;
  for (std::int64_t i = 0; i < 2; ++i) {
    for (std::int64_t j = 0; j < 2; ++j) {
      const std::int64_t row = down.base + i, column = across.base + j;
      if (row < 0 || row >= s.height || column < 0 || column >= s.width) continue;
      const double weight = (i == 0 ? 1 - down.fraction : down.fraction) * (j == 0 ? 1 - across.fraction : across.fraction);
      sum += weight * static_cast<double>(plane[row * s.width + column]);
    }
  }
  return static_cast<float>(sum);
}

void sample_block(const GridSample& s, const float* x, const float* grid, std::int64_t count, float* y) {
  const GridSampleKernels& k = grid_sample_kernels();
  SampleTaps taps;
  k.prepare(s, grid, count, taps);
  for (std::int64_t c = 0; c < s.channels; ++c) {
    const float* plane = x + c * s.height * s.width;
    float* to = y + c * s.positions;
    if (k.sample(plane, s.width, taps, count, to)) continue;
    for (std::int64_t p = 0; p < count; ++p) {
      if (std::isnan(to[p])) to[p] = sample_inside(s, plane, grid + 2 * p);
    }
  }
}

}  // namespace

void grid_sample_f32(const GridSample& s, const float* x, const float* grid, float* y) {
  const std::int64_t blocks = (s.positions + kSampleBlock - 1) / kSampleBlock, item = s.channels * s.height * s.width;
  parallel_for(s.batch * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      const std::int64_t n = b / blocks, first = b % blocks * kSampleBlock;
      sample_block(s, x + n * item, grid + 2 * (n * s.positions + first), std::min(kSampleBlock, s.positions - first),
                   y + n * s.channels * s.positions + first);
    }
  });
}

}  // namespace sdx::cpu
