#pragma once
// The part of a picture that becomes a crop, and the pixels that it needs.

#include <sdx/faces.hpp>

#include "vision/box.h"

namespace sdx::vision {

// The reach of the filter: Lanczos with three lobes.
inline constexpr int kLobes = 3;

// Maps the result's pixels to the picture: point (u, v) of the result, 0 to 1 across and down, is the picture's
//   x = center_x + (u - 1/2) * width * cos - (v - 1/2) * height * sin
//   y = center_y + (u - 1/2) * width * sin + (v - 1/2) * height * cos
struct Mapping {
  double center_x = 0, center_y = 0;
  double width = 0, height = 0;  // of the part, in the picture's pixels
  double sin = 0, cos = 1;
  int out_width = 0, out_height = 0;

  bool turned() const { return sin != 0; }
  double scale() const { return height / out_height; }  // picture pixels per pixel of the result, in both directions
  // The whole number by which the picture is averaged down before it is resampled. Beyond a ratio of 4 the filter would span 24
  // pixels and more in each direction for little gain: means of cells first, with a ratio of 2 to 3 left for the filter, differ
  // by 0.8 levels on average in a picture full of noise, and take a quarter of the time. A turned crop, whose filter is not
  // separable, begins at 3.
  int reduction() const;
};

// Throws Error(invalid_argument) for options out of range, and for faces whose box is not finite or has no area.
Mapping map_crop(int width, int height, const faces::Face& face, const faces::CropOptions& options);

}  // namespace sdx::vision
