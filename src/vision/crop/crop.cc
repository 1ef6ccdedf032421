#include <algorithm>
#include <sdx/faces.hpp>
#include <utility>

#include "base/error.h"
#include "media/image.h"
#include "vision/crop/fill.h"
#include "vision/crop/resample.h"
#include "vision/crop/turn.h"

namespace sdx::faces {
namespace {

using media::Image;

Image with_channels(Image picture, int channels) {
  if (picture.channels == channels) return picture;
  Image out = Image::blank(picture.width, picture.height, channels);
  const auto from_channels = static_cast<std::size_t>(picture.channels), to_channels = static_cast<std::size_t>(channels);
  const std::uint8_t* from = picture.pixels.data();
  for (std::size_t i = 0; i < out.pixels.size(); i += to_channels, from += from_channels) {
    for (std::size_t c = 0; c < 3; ++c) out.pixels[i + c] = from_channels == 1 ? from[0] : from[c];
    if (channels == 4) out.pixels[i + 3] = 255;
  }
  return out;
}

bool covers(const Image& part, int x, int y, const Region& need) {
  return x <= need.x && y <= need.y && static_cast<std::int64_t>(x) + part.width >= need.x + need.width &&
         static_cast<std::int64_t>(y) + part.height >= need.y + need.height;
}

void check_picture(int width, int height) {
  if (width >= 1 && height >= 1 && width <= 65535 && height <= 65535) return;
  fail(ErrorCode::invalid_argument, "a picture of {}x{} pixels; sides must be 1 to 65535", width, height);
}

// The needed part of a picture, `need`, as a part of the turned picture. `part` covers it.
Image turned_part(const Image& part, int x, int y, const Region& need, int degrees) {
  Image out = Image::blank(need.width, need.height, part.channels);
  for (int row = 0; row < need.height; ++row) {
    const std::uint8_t* from =
        part.row(need.y - y + row) + static_cast<std::size_t>(need.x - x) * static_cast<std::size_t>(part.channels);
    std::copy_n(from, out.stride(), out.row(row));
  }
  return vision::turn(std::move(out), degrees);
}

}  // namespace

Region needed_region(int width, int height, const Face& face, const CropOptions& options) {
  check_picture(width, height);
  if (face.turned != 0) {
    const vision::Turned size = vision::turned_size(width, height, face);
    const Region need = needed_region(size.width, size.height, vision::turned_upright(face, width, height), options);
    return vision::turned_back(need, face.turned, width, height);
  }
  return vision::read_region(vision::map_crop(width, height, face, options), width, height);
}

Image crop_part(const Image& part, int x, int y, int width, int height, const Face& face, const CropOptions& options) {
  media::check_pixels(part);
  check_picture(width, height);
  const Region need = needed_region(width, height, face, options);
  if (!covers(part, x, y, need)) {
    fail(ErrorCode::invalid_argument, "the crop needs {}x{} pixels at ({}, {}) of the picture; the part has {}x{} at ({}, {})",
         need.width, need.height, need.x, need.y, part.width, part.height, x, y);
  }
  if (face.turned != 0) {
    const vision::Turned size = vision::turned_size(width, height, face);
    const Face upright = vision::turned_upright(face, width, height);
    const Region there = needed_region(size.width, size.height, upright, options);
    return crop_part(turned_part(part, x, y, need, face.turned), there.x, there.y, size.width, size.height, upright, options);
  }
  const vision::Mapping map = vision::map_crop(width, height, face, options);
  const bool see_through = options.shape != Shape::rectangle || (options.fill == Fill::colour && options.colour[3] != 255);
  Image out = with_channels(vision::render({part, x, y, width, height}, map), see_through || part.channels == 4 ? 4 : 3);
  vision::fill_outside(out, map, width, height, options);
  vision::cut_shape(out, options);
  return out;
}

Image crop(const Image& picture, const Face& face, const CropOptions& options) {
  return crop_part(picture, 0, 0, picture.width, picture.height, face, options);
}

}  // namespace sdx::faces
