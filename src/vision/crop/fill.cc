#include "vision/crop/fill.h"

#include <algorithm>
#include <cmath>

#include "vision/enhance/blur.h"

namespace sdx::vision {
namespace {

using media::Image;

// The share of pixel (i, j) of the result that is inside the picture: 0 or 1 by its centre; for a turned picture, whose border is
// slanted, by the centre's distance from the border.
class Coverage {
 public:
  Coverage(const Mapping& map, int width, int height) : map_(map), width_(width), height_(height) {}

  double operator()(int i, int j) const {
    const double u = ((i + 0.5) / map_.out_width - 0.5) * map_.width, v = ((j + 0.5) / map_.out_height - 0.5) * map_.height;
    const double x = map_.center_x + u * map_.cos - v * map_.sin, y = map_.center_y + u * map_.sin + v * map_.cos;
    if (!map_.turned()) return x >= 0 && x < width_ && y >= 0 && y < height_ ? 1 : 0;
    const double inside = std::min({x, width_ - x, y, height_ - y});
    return std::clamp(inside / map_.scale() + 0.5, 0.0, 1.0);
  }

  bool whole() const {
    const double across = (map_.width * std::abs(map_.cos) + map_.height * std::abs(map_.sin)) / 2;
    const double down = (map_.width * std::abs(map_.sin) + map_.height * std::abs(map_.cos)) / 2;
    return map_.center_x - across >= 0 && map_.center_x + across <= width_ && map_.center_y - down >= 0 &&
           map_.center_y + down <= height_;
  }

 private:
  const Mapping& map_;
  double width_, height_;
};

void mix(std::uint8_t* to, const std::uint8_t* fill, int channels, double picture) {
  for (int c = 0; c < channels; ++c) {
    const double v = to[c] * picture + fill[c] * (1 - picture);
    to[c] = static_cast<std::uint8_t>(v + 0.5);
  }
}

// The crop, whose outside repeats the picture's edge, blurred by 4 % of its shorter side, in cells.
struct Blurred {
  Plane cells;
  int cell = 1;

  explicit Blurred(const Image& crop) {
    const CoarseBlur coarse = coarse_blur(std::max(1.0, 0.04 * std::min(crop.width, crop.height)));
    cell = coarse.cell;
    cells = averaged(crop, cell);
    gaussian(cells, coarse.sigma);
  }

  void at(int x, int y, std::uint8_t* to) const {
    const Between across = between_cells(x, cell), down = between_cells(y, cell);
    const auto column = [&](int i) { return static_cast<std::size_t>(std::clamp(i, 0, cells.width - 1) * cells.channels); };
    const float* above = cells.row(std::clamp(down.at, 0, cells.height - 1));
    const float* below = cells.row(std::clamp(down.at + 1, 0, cells.height - 1));
    const std::size_t left = column(across.at), right = column(across.at + 1);
    for (std::size_t c = 0; c < static_cast<std::size_t>(cells.channels); ++c) {
      const float top = above[left + c] + across.share * (above[right + c] - above[left + c]);
      const float bottom = below[left + c] + across.share * (below[right + c] - below[left + c]);
      to[c] = static_cast<std::uint8_t>(std::clamp(top + down.share * (bottom - top) + 0.5F, 0.0F, 255.0F));
    }
  }
};

// Signed distance in pixels from the edge of the shape, about: exact for rounded corners; for ellipses the first-order distance,
// which is right where it matters, near the edge.
double inside_by(const faces::CropOptions& o, double x, double y) {
  const double half_width = o.width / 2.0, half_height = o.height / 2.0;
  x -= half_width;
  y -= half_height;
  if (o.shape == faces::Shape::ellipse) {
    const double u = x / half_width, v = y / half_height;
    const double a = u / half_width, b = v / half_height, slope = 2 * std::sqrt(a * a + b * b);
    return slope > 0 ? (1 - u * u - v * v) / slope : std::min(half_width, half_height);
  }
  const double radius = o.radius * std::min(o.width, o.height);
  const double dx = std::abs(x) - (half_width - radius), dy = std::abs(y) - (half_height - radius);
  const double a = std::max(dx, 0.0), b = std::max(dy, 0.0);
  return radius - std::sqrt(a * a + b * b) - std::min(std::max(dx, dy), 0.0);
}

}  // namespace

void fill_outside(Image& crop, const Mapping& map, int width, int height, const faces::CropOptions& options) {
  const bool blur = options.fill == faces::Fill::blur;
  if (!blur && options.fill != faces::Fill::colour) return;
  const Coverage coverage(map, width, height);
  if (coverage.whole()) return;
  const std::optional<Blurred> blurred = blur ? std::optional<Blurred>(crop) : std::nullopt;
  std::array<std::uint8_t, 4> fill = options.colour;
  for (int y = 0; y < crop.height; ++y) {
    std::uint8_t* to = crop.row(y);
    for (int x = 0; x < crop.width; ++x, to += crop.channels) {
      const double picture = coverage(x, y);
      if (picture >= 1) continue;
      if (blurred) blurred->at(x, y, fill.data());
      mix(to, fill.data(), crop.channels, picture);
    }
  }
}

void cut_shape(Image& crop, const faces::CropOptions& options) {
  if (options.shape == faces::Shape::rectangle) return;
  for (int y = 0; y < crop.height; ++y) {
    std::uint8_t* opacity = crop.row(y) + 3;
    for (int x = 0; x < crop.width; ++x, opacity += 4) {
      const double share = std::clamp(inside_by(options, x + 0.5, y + 0.5) + 0.5, 0.0, 1.0);
      *opacity = static_cast<std::uint8_t>(*opacity * share + 0.5);
    }
  }
}

}  // namespace sdx::vision
