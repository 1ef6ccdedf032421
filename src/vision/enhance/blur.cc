#include "vision/enhance/blur.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace sdx::vision {
namespace {

std::vector<float> kernel_of(double sigma) {
  const int reach = std::max(1, static_cast<int>(std::ceil(3 * sigma)));
  std::vector<float> kernel(static_cast<std::size_t>(reach) + 1);
  double sum = 0;
  for (int i = 0; i <= reach; ++i) {
    const double w = std::exp(-0.5 * i * i / (sigma * sigma));
    kernel[static_cast<std::size_t>(i)] = static_cast<float>(w);
    sum += i == 0 ? w : 2 * w;
  }
  for (float& w : kernel) w = static_cast<float>(static_cast<double>(w) / sum);
  return kernel;
}

// to = sum over t of kernel[|t|] * from[i + t * step]; from has reach * step elements before and behind.
void convolve(const float* from, const std::vector<float>& kernel, std::size_t step, std::size_t elements, float* to) {
  constexpr std::size_t kBlock = 16;
  std::size_t i = 0;
  for (; i + kBlock <= elements; i += kBlock) {
    float sum[kBlock];
    for (std::size_t k = 0; k < kBlock; ++k) sum[k] = kernel[0] * from[i + k];
    for (std::size_t t = 1; t < kernel.size(); ++t) {
      const float* before = from + i - t * step;
      const float* behind = from + i + t * step;
      for (std::size_t k = 0; k < kBlock; ++k) sum[k] += kernel[t] * (before[k] + behind[k]);
    }
    std::memcpy(to + i, sum, sizeof sum);
  }
  for (; i < elements; ++i) {
    float sum = kernel[0] * from[i];
    for (std::size_t t = 1; t < kernel.size(); ++t) sum += kernel[t] * (*(from + i - t * step) + *(from + i + t * step));
    to[i] = sum;
  }
}

void blur_rows(Plane& plane, const std::vector<float>& kernel) {
  const auto channels = static_cast<std::size_t>(plane.channels);
  const std::size_t reach = kernel.size() - 1, pad = reach * channels, stride = plane.stride();
  std::vector<float> padded(stride + 2 * pad);
  for (int y = 0; y < plane.height; ++y) {
    float* row = plane.row(y);
    std::copy(row, row + stride, padded.begin() + static_cast<std::ptrdiff_t>(pad));
    for (std::size_t i = 0; i < reach; ++i) {
      for (std::size_t c = 0; c < channels; ++c) {
        padded[i * channels + c] = row[c];
        padded[pad + stride + i * channels + c] = row[stride - channels + c];
      }
    }
    convolve(padded.data() + pad, kernel, channels, stride, row);
  }
}

// Works in strips narrow enough for the cache, padded above and below.
void blur_columns(Plane& plane, const std::vector<float>& kernel) {
  constexpr std::size_t kStrip = 64;
  const std::size_t reach = kernel.size() - 1, stride = plane.stride();
  const auto height = static_cast<std::size_t>(plane.height);
  std::vector<float> padded((height + 2 * reach) * kStrip);
  for (std::size_t left = 0; left < stride; left += kStrip) {
    const std::size_t width = std::min(kStrip, stride - left);
    for (std::size_t y = 0; y < height + 2 * reach; ++y) {
      const std::size_t from = std::clamp<std::size_t>(y, reach, height + reach - 1) - reach;
      const float* row = plane.row(static_cast<int>(from)) + left;
      std::copy(row, row + width, padded.begin() + static_cast<std::ptrdiff_t>(y * kStrip));
    }
    for (std::size_t y = 0; y < height; ++y) {
      convolve(padded.data() + (y + reach) * kStrip, kernel, kStrip, width, plane.row(static_cast<int>(y)) + left);
    }
  }
}

}  // namespace

Plane averaged(const media::Image& picture, int cell) {
  const auto channels = static_cast<std::size_t>(picture.channels);
  Plane plane((picture.width - 1) / cell + 1, (picture.height - 1) / cell + 1, picture.channels);
  std::vector<std::uint32_t> sums(picture.stride());
  for (int row = 0; row < plane.height; ++row) {
    std::fill(sums.begin(), sums.end(), 0U);
    const int rows = std::min(cell, picture.height - row * cell);
    for (int y = 0; y < rows; ++y) {
      const std::uint8_t* from = picture.row(row * cell + y);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += from[i];
    }
    float* to = plane.row(row);
    for (int column = 0; column < plane.width; ++column) {
      const int columns = std::min(cell, picture.width - column * cell);
      const std::uint32_t* from = sums.data() + static_cast<std::size_t>(column) * static_cast<std::size_t>(cell) * channels;
      const float share = 1 / (static_cast<float>(rows) * static_cast<float>(columns));
      for (std::size_t c = 0; c < channels; ++c) {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < static_cast<std::size_t>(columns); ++i) sum += from[i * channels + c];
        *to++ = static_cast<float>(sum) * share;
      }
    }
  }
  return plane;
}

void gaussian(Plane& plane, double sigma) {
  if (!(sigma > 0.05) || plane.values.empty()) return;
  const std::vector<float> kernel = kernel_of(sigma);
  blur_rows(plane, kernel);
  blur_columns(plane, kernel);
}

CoarseBlur coarse_blur(double sigma) {
  CoarseBlur coarse;
  coarse.cell = std::max(1, static_cast<int>(sigma / 1.5));
  if (coarse.cell == 1) return {1, sigma};
  coarse.sigma = std::sqrt(sigma * sigma / coarse.cell / coarse.cell - 0.25);
  return coarse;
}

}  // namespace sdx::vision
