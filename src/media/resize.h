#pragma once
// Changing the size of 8-bit images.

#include "media/image.h"

namespace sdx::media {

enum class Filter {
  nearest,   // the pixel under the target pixel's centre
  bilinear,  // triangle
  bicubic,   // Keys, a = -0.5
  area,      // mean over the target pixel's exact footprint
};

// Pixel centres are at half-integers (as in Pillow, OpenCV and ONNX's half_pixel). `antialias` widens the filter when
// shrinking, as Pillow does; without it four (bicubic: sixteen) neighbours count, as in OpenCV. Nearest and area ignore
// it. Throws Error(invalid_argument) for sizes outside 1 to 65535.
Image resize(const Image& image, int width, int height, Filter filter = Filter::bilinear, bool antialias = true);

// The part of `image` with its upper left corner at (x, y); what lies outside is `fill`.
Image crop(const Image& image, int x, int y, int width, int height, std::uint8_t fill = 0);

// How a picture was placed into a model's input: input = picture * scale + offset.
struct Placement {
  double scale_x = 1, scale_y = 1;
  double offset_x = 0, offset_y = 0;
};

// Scales to fit inside width x height, keeping the proportions, on a ground of `fill`; in the middle, or in the upper left
// corner.
Image letterbox(const Image& image, int width, int height, Filter filter, std::uint8_t fill, bool centered, Placement* placement);

// Scales so that width x height is covered, keeping the proportions, and cuts out the middle.
Image center_crop(const Image& image, int width, int height, Filter filter, Placement* placement);

}  // namespace sdx::media
