#include "vision/crop/turn.h"

#include <utility>

#include "base/error.h"
#include "media/image.h"
#include "vision/detect/looks.h"

namespace sdx::vision {

Turned turned_size(int width, int height, const faces::Face& face) {
  const int d = face.turned;
  if (d != 0 && d != 90 && d != 180 && d != 270)
    fail(ErrorCode::invalid_argument, "a face is turned by {} degrees; expected 0, 90, 180 or 270", d);
  return d == 90 || d == 270 ? Turned{height, width} : Turned{width, height};
}

faces::Face turned_upright(const faces::Face& face, int width, int height) {
  const Turned size = turned_size(width, height, face);
  faces::Face out = face;
  out.turned = 0;
  if (face.turned != 0) turn_back(out, 360 - face.turned, {size.width, size.height});
  return out;
}

faces::Region turned_back(const faces::Region& r, int degrees, int width, int height) {
  switch (degrees) {
    case 90: return {r.y, height - r.x - r.width, r.height, r.width};
    case 180: return {width - r.x - r.width, height - r.y - r.height, r.width, r.height};
    case 270: return {width - r.y - r.height, r.x, r.height, r.width};
    default: return r;
  }
}

media::Image turn(media::Image picture, int degrees) {
  const int orientation = degrees == 90 ? 6 : degrees == 180 ? 3 : degrees == 270 ? 8 : 1;  // as EXIF numbers them
  return media::apply_orientation(std::move(picture), orientation);
}

}  // namespace sdx::vision

namespace sdx::faces {

// Turned about the origin, whose place the picture's sides do not matter for.
Box crop_box(const Face& face, const CropOptions& options) {
  Face part;
  part.box = crop_box(vision::turned_upright(face, 0, 0).box, options);
  if (face.turned != 0) vision::turn_back(part, face.turned, {0, 0});
  return part.box;
}

}  // namespace sdx::faces
