// Sharpening, and blurring the background.
#include <algorithm>

#include "vision/enhance/blur.h"
#include "vision/enhance/ellipse.h"
#include "vision/enhance/steps.h"

namespace sdx::vision {
namespace {

using media::Image;

// The share of the background in each pixel of a row.
class Background {
 public:
  Background(const faces::Face& face, int width) : ellipse_(face.box, 1.8, 2), shares_(static_cast<std::size_t>(width)) {}
  const std::vector<float>& row(int y) {
    ellipse_.radii(0, y, shares_);
    for (float& r : shares_) {
      const float t = std::clamp((r - 1) * 2, 0.0F, 1.0F);
      r = t * t * (3 - 2 * t);
    }
    return shares_;
  }

 private:
  Ellipse ellipse_;
  std::vector<float> shares_;
};

// Sums over cells of colour times share, and of the shares.
Plane sums_of(const Image& picture, int cell, std::size_t colours, Background& background) {
  Plane plane((picture.width - 1) / cell + 1, (picture.height - 1) / cell + 1, static_cast<int>(colours) + 1);
  const auto channels = static_cast<std::size_t>(picture.channels);
  for (int y = 0; y < picture.height; ++y) {
    const std::vector<float>& shares = background.row(y);
    const std::uint8_t* p = picture.row(y);
    float* to = plane.row(y / cell);
    for (std::size_t begin = 0; begin < shares.size(); to += colours + 1) {
      const std::size_t end = std::min(begin + static_cast<std::size_t>(cell), shares.size());
      for (; begin < end; ++begin, p += channels) {
        for (std::size_t c = 0; c < colours; ++c) to[c] += shares[begin] * static_cast<float>(p[c]);
        to[colours] += shares[begin];
      }
    }
  }
  return plane;
}

}  // namespace

void sharpen(Image& picture, double amount, double radius) {
  const auto channels = static_cast<std::size_t>(picture.channels);
  const std::size_t colours = std::min<std::size_t>(channels, 3);
  Plane blurred(picture.width, picture.height, 1);
  const auto luma = [&](const std::uint8_t* p) {
    if (channels == 1) return static_cast<float>(p[0]);
    return 0.299F * static_cast<float>(p[0]) + 0.587F * static_cast<float>(p[1]) + 0.114F * static_cast<float>(p[2]);
  };
  for (std::size_t i = 0; i < blurred.values.size(); ++i) blurred.values[i] = luma(picture.pixels.data() + i * channels);
  gaussian(blurred, radius);
  const auto weight = static_cast<float>(amount);
  for (std::size_t i = 0; i < blurred.values.size(); ++i) {
    std::uint8_t* p = picture.pixels.data() + i * channels;
    const float more = weight * (luma(p) - blurred.values[i]) + 0.5F;
    for (std::size_t c = 0; c < colours; ++c) {
      p[c] = static_cast<std::uint8_t>(std::clamp(static_cast<float>(p[c]) + more, 0.0F, 255.0F));
    }
  }
}

void blur_background(Image& picture, const faces::Face& face, double radius) {
  const auto channels = static_cast<std::size_t>(picture.channels);
  const std::size_t colours = std::min<std::size_t>(channels, 3), lanes = colours + 1;
  const CoarseBlur coarse = coarse_blur(radius);
  Background background(face, picture.width);
  Plane cells = sums_of(picture, coarse.cell, colours, background);
  gaussian(cells, coarse.sigma);
  std::vector<float> line(cells.stride());
  for (int y = 0; y < picture.height; ++y) {
    const Between down = between_cells(y, coarse.cell);
    const float* above = cells.row(std::max(down.at, 0));
    const float* below = cells.row(std::min(down.at + 1, cells.height - 1));
    for (std::size_t i = 0; i < line.size(); ++i) line[i] = above[i] + down.share * (below[i] - above[i]);
    const std::vector<float>& shares = background.row(y);
    std::uint8_t* p = picture.row(y);
    for (std::size_t x = 0; x < shares.size(); ++x, p += channels) {
      if (shares[x] <= 0) continue;
      const Between across = between_cells(static_cast<int>(x), coarse.cell);
      const float* left = line.data() + static_cast<std::size_t>(std::max(across.at, 0)) * lanes;
      const float* right = line.data() + static_cast<std::size_t>(std::min(across.at + 1, cells.width - 1)) * lanes;
      const float weight = left[colours] + across.share * (right[colours] - left[colours]);
      if (!(weight > 1e-6F)) continue;
      for (std::size_t c = 0; c < colours; ++c) {
        const float v = static_cast<float>(p[c]), blurred = (left[c] + across.share * (right[c] - left[c])) / weight;
        p[c] = static_cast<std::uint8_t>(std::clamp(v + shares[x] * (blurred - v) + 0.5F, 0.0F, 255.0F));
      }
    }
  }
}

}  // namespace sdx::vision
