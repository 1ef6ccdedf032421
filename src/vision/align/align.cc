#include <array>
#include <cmath>

#include <sdx/faces.hpp>

#include "base/error.h"
#include "media/image.h"
#include "vision/crop/geometry.h"

namespace sdx::faces {
namespace {

using media::Image;
using Place = std::array<double, 2>;
constexpr std::size_t kPoints = 5;

// ArcFace's, of 112x112 pixels.
constexpr std::array<Place, kPoints> kTemplate{
    {{38.2946, 51.6963}, {73.5318, 51.5014}, {56.0252, 71.7366}, {41.5493, 92.3655}, {70.7299, 92.2041}}};

std::array<Place, kPoints> template_of(int size) {
  if (size < 1 || size > kMaxCropSide || (size % 112 != 0 && size % 128 != 0)) {
    fail(ErrorCode::invalid_argument, "faces cannot be aligned to {} pixels; expected a multiple of 112 or 128, to {}", size,
         kMaxCropSide);
  }
  const bool wide = size % 112 != 0;
  const double scale = size / (wide ? 128.0 : 112.0);
  std::array<Place, kPoints> out = kTemplate;
  for (Place& p : out) p = {p[0] * scale + (wide ? 8 * scale : 0), p[1] * scale};
  return out;
}

std::array<Place, kPoints> points_of(const Face& face) {
  const Points& p = face.points;
  if (!p.complete()) {
    fail(ErrorCode::invalid_argument,
         "a face without its five points (eyes, nose, corners of the mouth) cannot be aligned; use a detector that returns them");
  }
  const auto place = [](const Point& q) { return Place{static_cast<double>(q.x), static_cast<double>(q.y)}; };
  return {place(*p.right_eye), place(*p.left_eye), place(*p.nose), place(*p.right_mouth), place(*p.left_mouth)};
}

Place mean_of(const std::array<Place, kPoints>& points) {
  Place mean{};
  for (const Place& p : points) {
    mean[0] += p[0] / kPoints;
    mean[1] += p[1] / kPoints;
  }
  return mean;
}

// Four pixels, black beyond the picture.
template <int Channels>
void sample(const Image& picture, double x, double y, std::uint8_t* to) {
  constexpr int kColours = Channels == 1 ? 1 : 3;
  // More than one pixel outside the picture, everything is black.
  if (!(x > -1 && y > -1 && x < picture.width && y < picture.height)) return;
  const int left = static_cast<int>(x + 1) - 1, top = static_cast<int>(y + 1) - 1;
  const auto across = static_cast<float>(x - left), down = static_cast<float>(y - top);
  static constexpr std::uint8_t kBlack[4] = {};
  const auto pixel = [&](int column, int row) {
    const bool inside = column >= 0 && column < picture.width && row >= 0 && row < picture.height;
    return inside ? picture.row(row) + static_cast<std::ptrdiff_t>(column) * Channels : kBlack;
  };
  const std::uint8_t* p[4] = {pixel(left, top), pixel(left + 1, top), pixel(left, top + 1), pixel(left + 1, top + 1)};
  for (int c = 0; c < kColours; ++c) {
    const auto above = static_cast<float>(p[0][c]) + across * static_cast<float>(p[1][c] - p[0][c]);
    const auto below = static_cast<float>(p[2][c]) + across * static_cast<float>(p[3][c] - p[2][c]);
    to[c] = static_cast<std::uint8_t>(above + down * (below - above) + 0.5F);
  }
}

template <int Channels>
void warp(const Image& picture, const Affine& m, Image& out) {
  const double determinant = m[0] * m[4] - m[1] * m[3];
  const double a = m[4] / determinant, b = -m[1] / determinant, c = -m[3] / determinant, d = m[0] / determinant;
  for (int j = 0; j < out.height; ++j) {
    std::uint8_t* to = out.row(j);
    for (int i = 0; i < out.width; ++i, to += out.channels) {
      const double x = i - m[2], y = j - m[5];
      sample<Channels>(picture, a * x + b * y, c * x + d * y, to);
    }
  }
}

}  // namespace

Affine alignment(const Face& face, int size) {
  const auto to = template_of(size);
  const auto from = points_of(face);
  const Place p0 = mean_of(from), q0 = mean_of(to);
  double along = 0, across = 0, length = 0;
  for (std::size_t k = 0; k < kPoints; ++k) {
    const double px = from[k][0] - p0[0], py = from[k][1] - p0[1], qx = to[k][0] - q0[0], qy = to[k][1] - q0[1];
    along += px * qx + py * qy;
    across += px * qy - py * qx;
    length += px * px + py * py;
  }
  const double a = along / length, b = across / length;
  if (!(length > 0) || !std::isfinite(a) || !std::isfinite(b) || !(a * a + b * b > 0)) {
    fail(ErrorCode::invalid_argument, "the face's five points do not span a face: they coincide or are not finite");
  }
  return {a, -b, q0[0] - (a * p0[0] - b * p0[1]), b, a, q0[1] - (b * p0[0] + a * p0[1])};
}

Image align(const Image& picture, const Face& face, int size) {
  media::check_pixels(picture);
  const Affine matrix = alignment(face, size);
  Image out = Image::blank(size, size, picture.channels == 1 ? 1 : 3);
  if (picture.channels == 1) {
    warp<1>(picture, matrix, out);
  } else if (picture.channels == 3) {
    warp<3>(picture, matrix, out);
  } else {
    warp<4>(picture, matrix, out);
  }
  return out;
}

}  // namespace sdx::faces
