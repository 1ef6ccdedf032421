#include <algorithm>
#include <sdx/faces.hpp>

#include "base/error.h"

namespace sdx::faces {
namespace {

constexpr int kLongest = 512;

// 8 bits, by ITU-R BT.601.
std::vector<int> luma(const media::Image& picture) {
  std::vector<int> out(static_cast<std::size_t>(picture.width) * static_cast<std::size_t>(picture.height));
  const auto channels = static_cast<std::size_t>(picture.channels);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint8_t* p = picture.pixels.data() + i * channels;
    out[i] = channels == 1 ? p[0] : (299 * p[0] + 587 * p[1] + 114 * p[2] + 500) / 1000;
  }
  return out;
}

media::Image reduced(const media::Image& picture) {
  const int longest = std::max(picture.width, picture.height);
  const auto side = [&](int n) { return std::max(1, static_cast<int>(static_cast<double>(n) * kLongest / longest + 0.5)); };
  return media::resize(picture, side(picture.width), side(picture.height), Preprocessing::Filter::area);
}

}  // namespace

double sharpness(const media::Image& picture) {
  if (std::max(picture.width, picture.height) > kLongest) return sharpness(reduced(picture));
  if (std::min(picture.width, picture.height) < 3) return 0;
  const std::vector<int> y = luma(picture);
  const auto width = static_cast<std::size_t>(picture.width), height = static_cast<std::size_t>(picture.height);
  std::int64_t sum = 0, squares = 0;
  for (std::size_t r = 1; r + 1 < height; ++r) {
    for (std::size_t c = 1; c + 1 < width; ++c) {
      const std::size_t i = r * width + c;
      const int laplacian = y[i - width] + y[i + width] + y[i - 1] + y[i + 1] - 4 * y[i];
      sum += laplacian;
      squares += static_cast<std::int64_t>(laplacian) * laplacian;
    }
  }
  const auto count = static_cast<double>((width - 2) * (height - 2));
  const double mean = static_cast<double>(sum) / count;
  return static_cast<double>(squares) / count - mean * mean;
}

Level level_of(double sharpness) { return sharpness > 1000 ? Level::high : sharpness > 300 ? Level::medium : Level::low; }

}  // namespace sdx::faces
