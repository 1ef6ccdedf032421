#include <algorithm>
#include <cstdint>

#include <sdx/faces.hpp>

#include "media/image.h"

namespace sdx::faces {
namespace {

using media::Image;

constexpr int kLongest = 512;

// The share of each row or column of the large picture in one of the small picture, by area.
struct Shares {
  struct Share {
    int at;
    float weight;
  };
  std::vector<Share> shares;
  std::vector<std::size_t> begin;  // of each position, and the end

  Shares(int from, int to) {
    const double ratio = static_cast<double>(from) / to;
    for (int i = 0; i < to; ++i) {
      begin.push_back(shares.size());
      const double left = i * ratio, right = std::min<double>(from, left + ratio);
      for (int p = static_cast<int>(left); p < right; ++p) {
        const double covered = std::min(p + 1.0, right) - std::max<double>(p, left);
        if (covered > 0) shares.push_back({p, static_cast<float>(covered / ratio)});
      }
    }
    begin.push_back(shares.size());
  }
};

// Means by area, as OpenCV's INTER_AREA; on one thread, unlike media::resize(): each of a batch's workers judges for itself.
Image reduced(const Image& picture) {
  const int longest = std::max(picture.width, picture.height);
  const auto side = [&](int n) { return std::max(1, static_cast<int>(static_cast<double>(n) * kLongest / longest + 0.5)); };
  Image out = Image::blank(side(picture.width), side(picture.height), picture.channels);
  const Shares across(picture.width, out.width), down(picture.height, out.height);
  const auto channels = static_cast<std::size_t>(picture.channels);
  std::vector<float> row(picture.stride());
  for (std::size_t y = 0; y + 1 < down.begin.size(); ++y) {
    std::fill(row.begin(), row.end(), 0.0F);
    for (std::size_t s = down.begin[y]; s < down.begin[y + 1]; ++s) {
      const std::uint8_t* from = picture.row(down.shares[s].at);
      for (std::size_t i = 0; i < row.size(); ++i) row[i] += down.shares[s].weight * static_cast<float>(from[i]);
    }
    std::uint8_t* to = out.row(static_cast<int>(y));
    for (std::size_t x = 0; x + 1 < across.begin.size(); ++x) {
      for (std::size_t c = 0; c < channels; ++c) {
        float sum = 0.5F;
        for (std::size_t s = across.begin[x]; s < across.begin[x + 1]; ++s) {
          sum += across.shares[s].weight * row[static_cast<std::size_t>(across.shares[s].at) * channels + c];
        }
        *to++ = static_cast<std::uint8_t>(std::clamp(sum, 0.0F, 255.0F));
      }
    }
  }
  return out;
}

// 8 bits, by ITU-R BT.601.
std::vector<int> luma(const Image& picture) {
  std::vector<int> out(static_cast<std::size_t>(picture.width) * static_cast<std::size_t>(picture.height));
  const auto channels = static_cast<std::size_t>(picture.channels);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint8_t* p = picture.pixels.data() + i * channels;
    out[i] = channels == 1 ? p[0] : (299 * p[0] + 587 * p[1] + 114 * p[2] + 500) / 1000;
  }
  return out;
}

}  // namespace

double sharpness(const Image& picture) {
  media::check_pixels(picture);
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
