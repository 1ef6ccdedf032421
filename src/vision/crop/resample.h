#pragma once
// Parts of pictures at another size, by Lanczos with three lobes; beyond the picture its edge goes on.

#include <sdx/image.hpp>

#include "vision/crop/geometry.h"

namespace sdx::vision {

// A picture of which only a part is there.
struct Part {
  const media::Image& pixels;
  int x = 0, y = 0;           // of its upper left corner
  int width = 0, height = 0;  // of the whole picture
};

// What render() reads, within the picture.
faces::Region read_region(const Mapping& map, int width, int height);

// The result's pixels, with the picture's channels. Colours count by their opacity, so that what is transparent does not show.
media::Image render(const Part& part, const Mapping& map);

}  // namespace sdx::vision
