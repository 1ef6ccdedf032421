#include <sdx/faces.hpp>

#include "media/image.h"
#include "vision/box.h"
#include "vision/enhance/steps.h"

namespace sdx::faces {

void enhance(media::Image& picture, const Enhance& settings, const Face* face) {
  media::check_pixels(picture);
  vision::check_enhance(settings);
  if (face != nullptr) vision::check_box(face->box);
  const bool colours = picture.channels != 1;
  if (settings.auto_colour && colours) vision::balance_colours(picture);
  if (settings.red_eye && colours && face != nullptr) vision::remove_red_eyes(picture, *face);
  vision::tone(picture, settings);
  if (settings.saturation != 1 && colours) vision::saturate(picture, settings.saturation);
  if (settings.smooth_skin > 0 && colours && face != nullptr) vision::smooth_skin(picture, *face, settings.smooth_skin);
  if (settings.sharpen > 0) vision::sharpen(picture, settings.sharpen, settings.sharpen_radius);
  if (settings.blur_background > 0 && face != nullptr) vision::blur_background(picture, *face, settings.blur_background);
}

}  // namespace sdx::faces
