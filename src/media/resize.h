#pragma once
// Cutting pictures, and fitting them into a size.

#include "media/image.h"

namespace sdx::media {

// The part of `image` with its upper left corner at (x, y); pixels outside are `fill`.
SDX_TOOLS_API Image crop(const Image& image, int x, int y, int width, int height, std::uint8_t fill = 0);

// Scales to fit inside width x height, keeping the proportions, on a ground of `fill`; in the middle, or in the upper left
// corner.
Image letterbox(const Image& image, int width, int height, Filter filter, std::uint8_t fill, bool centered, Placement* placement);

// Scales so that width x height is covered, keeping the proportions, and cuts out the middle.
Image center_crop(const Image& image, int width, int height, Filter filter, Placement* placement);

}  // namespace sdx::media
