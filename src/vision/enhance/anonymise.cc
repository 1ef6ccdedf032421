#include <algorithm>
#include <cmath>

#include <sdx/faces.hpp>

#include "base/error.h"
#include "media/image.h"
#include "media/resize.h"
#include "vision/enhance/blur.h"
#include "vision/enhance/ellipse.h"

namespace sdx::faces {
namespace {

using media::Image;

// The part of the picture around the face, at the mosaic's size: one colour a cell.
struct Cells {
  vision::Pixels part;
  int cell = 1;
  vision::Plane colours;
};

Cells cells_of(const Image& picture, const vision::Pixels& part, int cell) {
  const Image inside = media::crop(picture, part.left, part.top, part.right - part.left, part.bottom - part.top);
  return {part, cell, vision::averaged(inside, cell)};
}

template <class Colour>
void replace(Image& picture, const vision::Ellipse& ellipse, const vision::Pixels& part, const Colour& colour) {
  std::vector<float> radii(static_cast<std::size_t>(part.right - part.left));
  for (int y = part.top; y < part.bottom; ++y) {
    ellipse.radii(part.left, y, radii);
    std::uint8_t* p = picture.row(y) + static_cast<std::ptrdiff_t>(part.left) * picture.channels;
    for (std::size_t i = 0; i < radii.size(); ++i, p += picture.channels) {
      if (radii[i] <= 1) colour(static_cast<int>(i), y - part.top, p);
    }
  }
}

std::uint8_t byte_of(float v) { return static_cast<std::uint8_t>(std::clamp(v + 0.5F, 0.0F, 255.0F)); }

// Sides of the whole box, in pixels: a face that the frame cuts is hidden as coarsely as one that it does not.
double longer(const Box& box) { return std::max({1.0, static_cast<double>(box.width), static_cast<double>(box.height)}); }

void mosaic(Image& picture, const vision::Ellipse& ellipse, const vision::Pixels& part, const Box& box) {
  constexpr int kMost = 8;
  const int cell = vision::to_int(std::ceil(longer(box) / kMost), 4, 65535);
  const Cells cells = cells_of(picture, part, cell);
  replace(picture, ellipse, part, [&](int x, int y, std::uint8_t* p) {
    const float* from = cells.colours.row(y / cell) + static_cast<std::ptrdiff_t>(x / cell) * picture.channels;
    std::transform(from, from + picture.channels, p, byte_of);
  });
}

// Sixteen cells across the box, blurred by a fifth of it, and interpolated between cells: a Gaussian of that width, from which
// nothing finer than the cells can be recovered.
void blur(Image& picture, const vision::Ellipse& ellipse, const vision::Pixels& part, const Box& box) {
  const double sigma = std::max(2.0, longer(box) / 5);
  const int cell = vision::to_int(longer(box) / 16, 1, 65535);
  Cells cells = cells_of(picture, part, cell);
  vision::gaussian(cells.colours, std::min(sigma / cell, 20.0));
  const vision::Plane& colours = cells.colours;
  replace(picture, ellipse, part, [&](int x, int y, std::uint8_t* p) {
    const vision::Between across = vision::between_cells(x, cell), down = vision::between_cells(y, cell);
    const float* above = colours.row(std::max(down.at, 0));
    const float* below = colours.row(std::min(down.at + 1, colours.height - 1));
    const std::ptrdiff_t left = static_cast<std::ptrdiff_t>(std::max(across.at, 0)) * colours.channels;
    const std::ptrdiff_t right = static_cast<std::ptrdiff_t>(std::min(across.at + 1, colours.width - 1)) * colours.channels;
    for (int c = 0; c < colours.channels; ++c) {
      const float top = above[left + c] + across.share * (above[right + c] - above[left + c]);
      const float bottom = below[left + c] + across.share * (below[right + c] - below[left + c]);
      p[c] = byte_of(top + down.share * (bottom - top));
    }
  });
}

void cover(Image& picture, const vision::Pixels& part) {
  for (int y = part.top; y < part.bottom; ++y) {
    std::uint8_t* p = picture.row(y) + static_cast<std::ptrdiff_t>(part.left) * picture.channels;
    for (int x = part.left; x < part.right; ++x, p += picture.channels) {
      for (int c = 0; c < picture.channels; ++c) p[c] = c == 3 ? 255 : 0;
    }
  }
}

}  // namespace

void anonymise(Image& picture, const Face& face, Anonymise method, double margin) {
  media::check_pixels(picture);
  vision::check_box(face.box);
  if (!(margin >= 0 && margin <= 10)) fail(ErrorCode::invalid_argument, "the margin is {}; expected 0 to 10", margin);
  const double scale = 1 + 2 * margin;
  const vision::Ellipse ellipse(face.box, scale, scale);
  const vision::Pixels part = ellipse.pixels(picture.width, picture.height);
  if (part.empty()) return;
  if (method == Anonymise::box) return cover(picture, part);
  if (method == Anonymise::mosaic) return mosaic(picture, ellipse, part, face.box);
  blur(picture, ellipse, part, face.box);
}

}  // namespace sdx::faces
