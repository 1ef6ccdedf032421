#include "vision/batch/cut.h"

#include "vision/crop/geometry.h"
#include "vision/crop/turn.h"
#include "vision/names.h"

namespace sdx::vision::batch {
namespace {

using faces::Face;

Face scaled(Face f, double by) {
  const auto k = static_cast<float>(by);
  f.box = {f.box.x * k, f.box.y * k, f.box.width * k, f.box.height * k};
  change_points(f.points, [k](faces::Point p) { return faces::Point{p.x * k, p.y * k}; });
  return f;
}

// The position of a face in its crop.
Face in_crop(Face f, const Mapping& map) {
  const auto moved = [&](faces::Point p) {
    const double dx = p.x - map.center_x, dy = p.y - map.center_y;
    return faces::Point{static_cast<float>(((dx * map.cos + dy * map.sin) / map.width + 0.5) * map.out_width),
                        static_cast<float>(((dy * map.cos - dx * map.sin) / map.height + 0.5) * map.out_height)};
  };
  const faces::Point center = moved({f.box.x + f.box.width / 2, f.box.y + f.box.height / 2});
  const auto k = static_cast<float>(1 / map.scale());
  f.box = {center.x - f.box.width * k / 2, center.y - f.box.height * k / 2, f.box.width * k, f.box.height * k};
  change_points(f.points, moved);
  return f;
}

}  // namespace

faces::Detection find_faces(Picture& picture, const faces::FaceDetector& detector) {
  Picture::Shrunk shrunk = picture.shrunk(detector.useful_size(picture.width(), picture.height()));
  faces::Detection found = detector.detect(*shrunk.image, shrunk.scale);
  if (found.small_faces && shrunk.scale < 1) {
    shrunk = {&picture.whole().image, 1};
    found = detector.detect(*shrunk.image);
  }
  if (shrunk.scale != 1) {
    for (Face& face : found.faces) face = scaled(face, 1 / shrunk.scale);
    found.smallest /= shrunk.scale;
  }
  return found;
}

media::Image cut_face(const PictureView& view, int width, int height, const Face& face, const Settings& settings) {
  media::Image crop = faces::crop_part(view.image, view.left, view.top, width, height, face, settings.crop);
  if (settings.enhance) {
    const Turned size = turned_size(width, height, face);
    const Face upright = turned_upright(face, width, height);
    const Face moved = in_crop(upright, map_crop(size.width, size.height, upright, settings.crop));
    faces::enhance(crop, *settings.enhance, &moved);
  }
  return crop;
}

media::FileFormat own_format(std::string_view format, int channels) {
  const auto own = media::file_format(format);
  if (own && !(*own == media::FileFormat::jpeg && channels == 4)) return *own;
  const bool lossless = channels == 4 || format == "pnm";
  return lossless ? media::FileFormat::png : media::FileFormat::jpeg;
}

media::EncodeOptions encoding(const PictureView& view, media::FileFormat format, const Settings& settings) {
  media::EncodeOptions o;
  o.format = format;
  o.quality = settings.quality;
  if (settings.task == Task::crop) {
    o.dpi = settings.crop.dpi;
    if (settings.crop.fill == faces::Fill::colour && settings.crop.colour[3] == 255) {
      o.background = {settings.crop.colour[0], settings.crop.colour[1], settings.crop.colour[2]};
    }
  }
  if (settings.metadata == MetadataMode::preserve) o.metadata = view.metadata;
  o.cropped = settings.task == Task::crop || settings.task == Task::align;
  if (settings.metadata != MetadataMode::strip) {
    o.metadata.tags.insert(o.metadata.tags.end(), settings.tags.begin(), settings.tags.end());
  }
  return o;
}

}  // namespace sdx::vision::batch
