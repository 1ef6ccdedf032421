#pragma once
// Gaussian blur of planes of floats.

#include <cstddef>
#include <vector>

#include <sdx/image.hpp>

namespace sdx::vision {

// float[height, width, channels].
struct Plane {
  int width = 0, height = 0, channels = 1;
  std::vector<float> values;

  Plane() = default;
  Plane(int w, int h, int c)
      : width(w),
        height(h),
        channels(c),
        values(static_cast<std::size_t>(w) * static_cast<std::size_t>(h) * static_cast<std::size_t>(c)) {}
  std::size_t stride() const { return static_cast<std::size_t>(width) * static_cast<std::size_t>(channels); }
  float* row(int y) { return values.data() + static_cast<std::size_t>(y) * stride(); }
  const float* row(int y) const { return values.data() + static_cast<std::size_t>(y) * stride(); }
};

// The means of cells of cell x cell pixels; those at the right and lower edge may be smaller.
Plane averaged(const media::Image& picture, int cell);

// Blurs in place and repeats edges; sigma in pixels, up to about 20 (the time grows with it). The kernel ends at 3 sigma.
void gaussian(Plane& plane, double sigma);

// The factor by which a picture may be averaged down before a blur of `sigma` pixels, and the sigma that is left for the small
// picture: averaging cells and interpolating between them blur by half a cell themselves.
struct CoarseBlur {
  int cell = 1;
  double sigma = 0;  // in cells
};
CoarseBlur coarse_blur(double sigma);

// The weights of a pixel's centre between four cells. `at` is the first cell; the reader clamps it, and `at + 1`.
struct Between {
  int at = 0;
  float share = 0;  // of cell at + 1
};
inline Between between_cells(int pixel, int cell) {
  const float place = (static_cast<float>(pixel) + 0.5F) / static_cast<float>(cell) - 0.5F;
  const int at = place < 0 ? -1 : static_cast<int>(place);
  return {at, place - static_cast<float>(at)};
}

}  // namespace sdx::vision
