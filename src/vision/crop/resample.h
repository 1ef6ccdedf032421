#pragma once
// Resamples parts of pictures by Lanczos with three lobes; beyond the picture, its edge is repeated.

#include <sdx/image.hpp>

#include "vision/crop/geometry.h"

namespace sdx::vision {

// An available part of a picture.
struct Part {
  const media::Image& pixels;
  int x = 0, y = 0;           // of its upper left corner
  int width = 0, height = 0;  // of the whole picture
};

// The region that render() reads, within the picture.
faces::Region read_region(const Mapping& map, int width, int height);

// The result's pixels, with the picture's channels. Colours are weighted by opacity, so that transparent pixels do not show.
media::Image render(const Part& part, const Mapping& map);

}  // namespace sdx::vision
