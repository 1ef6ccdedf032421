#include "vision/crop/geometry.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "vision/box.h"

namespace sdx::vision {
namespace {

using faces::CropOptions;
using faces::Face;

// Less moves no pixel of a 1000-pixel crop by a tenth of its width.
constexpr double kLevel = 0.0002;

void check_range(const char* name, double value, double low, double high) {
  if (value >= low && value <= high) return;
  fail(ErrorCode::invalid_argument, "{} is {}; expected {} to {}", name, value, low, high);
}

void check_options(const CropOptions& o) {
  check_range("the crop's width", o.width, 1, faces::kMaxCropSide);
  check_range("the crop's height", o.height, 1, faces::kMaxCropSide);
  check_range("the face's share of the crop's height in per cent", o.face_height, 1, 400);
  if (o.position == faces::Position::custom) {
    check_range("the horizontal offset", o.offset_x, -1, 1);
    check_range("the vertical offset", o.offset_y, -1, 1);
  }
  if (o.shape == faces::Shape::rounded) check_range("the corners' radius", o.radius, 0, 0.5);
}

struct Rectangle {
  double x = 0, y = 0, width = 0, height = 0;
};

Rectangle crop_rectangle(const faces::Box& face, const CropOptions& options) {
  const double height = static_cast<double>(face.height) / (options.face_height / 100);
  const double width = height * options.width / options.height;
  double across = 0.5, down = 0.5;
  if (options.position == faces::Position::rule_of_thirds) down = 1.0 / 3;
  if (options.position == faces::Position::custom) {
    across += options.offset_x / 2;
    down += options.offset_y / 2;
  }
  return {static_cast<double>(face.x) + static_cast<double>(face.width) / 2 - across * width,
          static_cast<double>(face.y) + static_cast<double>(face.height) / 2 - down * height, width, height};
}

// Sets the rotation to the angle between the line through the eyes and the horizontal, as (sin, cos).
void level_eyes(const Face& face, Mapping& map) {
  if (!face.points.right_eye || !face.points.left_eye) return;
  const double dx = static_cast<double>(face.points.left_eye->x) - static_cast<double>(face.points.right_eye->x);
  const double dy = static_cast<double>(face.points.left_eye->y) - static_cast<double>(face.points.right_eye->y);
  const double length = std::hypot(dx, dy);
  if (!(length > 1e-6) || !std::isfinite(length)) return;
  if (dx > 0 && std::abs(dy) < kLevel * length) return;
  map.sin = dy / length;
  map.cos = dx / length;
}

// The crop moved inside the picture, and shrunk where it is larger. What counts is the upright rectangle around it.
void move_inside(int width, int height, Mapping& map) {
  const auto across = [&] { return (map.width * std::abs(map.cos) + map.height * std::abs(map.sin)) / 2; };
  const auto down = [&] { return (map.width * std::abs(map.sin) + map.height * std::abs(map.cos)) / 2; };
  const double shrink = std::min({1.0, width / (2 * across()), height / (2 * down())});
  map.width *= shrink;
  map.height *= shrink;
  const auto clamp = [](double value, double reach, int side) {
    return reach * 2 >= side ? side / 2.0 : std::clamp(value, reach, side - reach);
  };
  map.center_x = clamp(map.center_x, across(), width);
  map.center_y = clamp(map.center_y, down(), height);
}

}  // namespace

int Mapping::reduction() const {
  const double ratio = scale();
  if (turned()) return ratio < 3 ? 1 : to_int(ratio / 1.5, 1, 1 << 20);
  return ratio < 4 ? 1 : to_int(ratio / 2, 1, 1 << 20);
}

Mapping map_crop(int width, int height, const Face& face, const CropOptions& options) {
  check_options(options);
  check_box(face.box);
  const Rectangle box = crop_rectangle(face.box, options);
  Mapping map;
  map.out_width = options.width;
  map.out_height = options.height;
  map.width = box.width;
  map.height = box.height;
  if (options.align_eyes) level_eyes(face, map);
  // Turned about the middle of the face.
  const double x = static_cast<double>(face.box.x) + static_cast<double>(face.box.width) / 2;
  const double y = static_cast<double>(face.box.y) + static_cast<double>(face.box.height) / 2;
  const double dx = box.x + map.width / 2 - x;
  const double dy = box.y + map.height / 2 - y;
  map.center_x = x + dx * map.cos - dy * map.sin;
  map.center_y = y + dx * map.sin + dy * map.cos;
  if (options.fill == faces::Fill::shift) move_inside(width, height, map);
  return map;
}

}  // namespace sdx::vision

namespace sdx::faces {

Box crop_box(const Box& face, const CropOptions& options) {
  vision::check_options(options);
  const vision::Rectangle r = vision::crop_rectangle(face, options);
  return {static_cast<float>(r.x), static_cast<float>(r.y), static_cast<float>(r.width), static_cast<float>(r.height)};
}

int mm_to_pixels(double mm, double dpi) {
  if (!(mm > 0 && dpi > 0)) fail(ErrorCode::invalid_argument, "{} mm at {} dpi: both must be greater than 0", mm, dpi);
  const double pixels = std::floor(mm / 25.4 * dpi + 0.5);
  if (!(pixels >= 1 && pixels <= kMaxCropSide)) {
    fail(ErrorCode::invalid_argument, "{} mm at {} dpi are {} pixels; a side must be 1 to {}", mm, dpi, pixels, kMaxCropSide);
  }
  return static_cast<int>(pixels);
}

}  // namespace sdx::faces
