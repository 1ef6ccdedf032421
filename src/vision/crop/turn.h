#pragma once
// Faces that do not stand upright in their picture: the same in the picture turned by Face::turned.

#include <sdx/faces.hpp>

namespace sdx::vision {

// A picture's sides after that turn.
struct Turned {
  int width = 0, height = 0;
};
// Throws Error(invalid_argument) unless the face is turned by 0, 90, 180 or 270 degrees.
Turned turned_size(int width, int height, const faces::Face& face);
// The face in the turned picture; `turned` of the result is 0. `width` and `height` are those of the original picture.
faces::Face turned_upright(const faces::Face& face, int width, int height);
// A part of the turned picture, as one of the picture as it is.
faces::Region turned_back(const faces::Region& region, int degrees, int width, int height);
// Clockwise; channels are kept.
media::Image turn(media::Image picture, int degrees);

}  // namespace sdx::vision
