#include <algorithm>
#include <cmath>

#include "vision/box.h"
#include "vision/enhance/steps.h"

namespace sdx::vision {
namespace {

// 0: not red; 1: certainly.
float redness(const std::uint8_t* p) {
  const int other = std::max<int>(p[1], p[2]);
  if (p[0] < 70 || 5 * p[0] < 9 * other) return 0;
  return std::min(1.0F, (static_cast<float>(p[0]) / static_cast<float>(std::max(other, 1)) - 1.8F) * 4 + 0.25F);
}

struct Circle {
  double x, y, radius;
  bool has(int column, int row) const {
    const double dx = column + 0.5 - x, dy = row + 0.5 - y;
    return dx * dx + dy * dy <= radius * radius;
  }
};

void clean(media::Image& picture, const Circle& eye) {
  const auto side = static_cast<float>(2 * eye.radius);
  const faces::Box box{static_cast<float>(eye.x - eye.radius), static_cast<float>(eye.y - eye.radius), side, side};
  const Pixels part = pixels_of(box, picture.width, picture.height);
  const auto channels = static_cast<std::size_t>(picture.channels);
  const auto each = [&](auto&& what) {
    for (int y = part.top; y < part.bottom; ++y) {
      std::uint8_t* p = picture.row(y) + static_cast<std::size_t>(part.left) * channels;
      for (int x = part.left; x < part.right; ++x, p += channels) {
        if (eye.has(x, y)) what(p);
      }
    }
  };
  std::size_t all = 0, red = 0;
  each([&](const std::uint8_t* p) {
    ++all;
    red += redness(p) > 0 ? 1 : 0;
  });
  if (red == 0 || 2 * red > all) return;
  each([](std::uint8_t* p) {
    const float share = redness(p);
    const float grey = (static_cast<float>(p[1]) + static_cast<float>(p[2])) / 2;
    p[0] = static_cast<std::uint8_t>(static_cast<float>(p[0]) + share * (grey - static_cast<float>(p[0])) + 0.5F);
  });
}

}  // namespace

void remove_red_eyes(media::Image& picture, const faces::Face& face) {
  const auto& right = face.points.right_eye;
  const auto& left = face.points.left_eye;
  if (!right || !left) return;
  const double apart = std::hypot(static_cast<double>(left->x) - static_cast<double>(right->x),
                                  static_cast<double>(left->y) - static_cast<double>(right->y));
  if (!std::isfinite(apart)) return;
  // Points that lie further apart than the face is wide are not eyes.
  const double radius = std::min(apart, static_cast<double>(face.box.width)) / 6;
  for (const faces::Point& eye : {*right, *left}) {
    if (std::isfinite(eye.x) && std::isfinite(eye.y)) {
      clean(picture, {static_cast<double>(eye.x), static_cast<double>(eye.y), radius});
    }
  }
}

}  // namespace sdx::vision
