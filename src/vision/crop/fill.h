#pragma once
// Fills the parts outside the picture, and outside the crop's shape.

#include <sdx/faces.hpp>

#include "vision/crop/geometry.h"

namespace sdx::vision {

// Fill::colour and Fill::blur; the others need nothing. `width` and `height` are the picture's.
void fill_outside(media::Image& crop, const Mapping& map, int width, int height, const faces::CropOptions& options);

// The fourth channel times how much of each pixel lies inside the shape.
void cut_shape(media::Image& crop, const faces::CropOptions& options);

}  // namespace sdx::vision
