#include "media/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/thread_pool.h"

namespace sdx::media {
namespace {

// For each target position, the first source position and the weights from there on.
struct Taps {
  int count = 0;  // per position
  std::vector<int> first;
  std::vector<float> weight;
};

double kernel(Filter filter, double x) {
  x = std::abs(x);
  if (filter == Filter::bilinear) return x < 1 ? 1 - x : 0;
  constexpr double a = -0.5;
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

double weight_at(Filter filter, double center, double scale, double footprint, int position) {
  if (filter == Filter::area) {
    const double half = std::max(footprint, 1.0) / 2;
    return std::max(0.0, std::min(position + 1.0, center + half) - std::max<double>(position, center - half));
  }
  return kernel(filter, (position + 0.5 - center) / scale);
}

Taps make_taps(int from, int to, Filter filter, bool antialias) {
  const double ratio = static_cast<double>(from) / to;
  const double scale = antialias ? std::max(ratio, 1.0) : 1.0;
  const double reach = filter == Filter::area ? std::max(ratio, 1.0) / 2 : scale * (filter == Filter::bicubic ? 2 : 1);
  Taps taps;
  const int span = static_cast<int>(std::ceil(reach * 2)) + 1;
  taps.count = std::min(from, span);
  taps.first.resize(static_cast<std::size_t>(to));
  taps.weight.assign(static_cast<std::size_t>(to) * static_cast<std::size_t>(taps.count), 0.0F);
  std::vector<double> w(static_cast<std::size_t>(taps.count));
  for (int i = 0; i < to; ++i) {
    const double center = (i + 0.5) * ratio;
    const int low = static_cast<int>(std::floor(center - reach));
    const int first = std::clamp(low, 0, from - taps.count);
    std::fill(w.begin(), w.end(), 0.0);
    double sum = 0;
    // With antialiasing positions outside the picture do not count, as in Pillow; without it the edge pixel stands in
    // for them, as in OpenCV.
    for (int p = low; p <= low + span; ++p) {
      const bool inside = p >= 0 && p < from;
      if (!inside && antialias) continue;
      const double v = weight_at(filter, center, scale, ratio, p);
      const int slot = std::clamp(p, 0, from - 1) - first;
      if (v == 0 || slot < 0 || slot >= taps.count) continue;
      w[static_cast<std::size_t>(slot)] += v;
      sum += v;
    }
    taps.first[static_cast<std::size_t>(i)] = first;
    for (int t = 0; t < taps.count; ++t) {
      taps.weight[static_cast<std::size_t>(i) * static_cast<std::size_t>(taps.count) + static_cast<std::size_t>(t)] =
          static_cast<float>(w[static_cast<std::size_t>(t)] / sum);
    }
  }
  return taps;
}

Image resize_nearest(const Image& image, int width, int height) {
  Image out = Image::blank(width, height, image.channels);
  const auto channels = static_cast<std::size_t>(image.channels);
  for (int y = 0; y < height; ++y) {
    const auto v =
        static_cast<int>((2 * static_cast<std::int64_t>(y) + 1) * image.height / (2 * static_cast<std::int64_t>(height)));
    for (int x = 0; x < width; ++x) {
      const auto u =
          static_cast<int>((2 * static_cast<std::int64_t>(x) + 1) * image.width / (2 * static_cast<std::int64_t>(width)));
      std::memcpy(out.row(y) + static_cast<std::size_t>(x) * channels, image.row(v) + static_cast<std::size_t>(u) * channels,
                  channels);
    }
  }
  return out;
}

void resize_row(const std::uint8_t* from, int channels, const Taps& taps, float* to) {
  const std::size_t width = taps.first.size();
  for (std::size_t x = 0; x < width; ++x) {
    const float* w = taps.weight.data() + x * static_cast<std::size_t>(taps.count);
    const std::uint8_t* p = from + static_cast<std::ptrdiff_t>(taps.first[x]) * channels;
    for (int c = 0; c < channels; ++c) {
      float sum = 0;
      for (int t = 0; t < taps.count; ++t) sum += w[t] * static_cast<float>(p[t * channels + c]);
      *to++ = sum;
    }
  }
}

}  // namespace

Image resize(const Image& image, int width, int height, Filter filter, bool antialias) {
  check_pixels(image);
  if (width < 1 || height < 1 || width > 65535 || height > 65535) {
    fail(ErrorCode::invalid_argument, "cannot resize to {}x{}: sides must be 1 to 65535", width, height);
  }
  if (width == image.width && height == image.height) return image;
  if (filter == Filter::nearest) return resize_nearest(image, width, height);
  const bool wide = antialias || filter == Filter::area;
  const Taps across = make_taps(image.width, width, filter, wide);
  const Taps down = make_taps(image.height, height, filter, wide);
  Image out = Image::blank(width, height, image.channels);
  const std::size_t stride = out.stride();
  // Rows are resized across when a target row first needs them; each task keeps a ring of as many as one target row needs.
  parallel_for(height, 16, [&](std::int64_t begin, std::int64_t end) {
    const auto ring = static_cast<std::size_t>(down.count);
    std::vector<float> rows(ring * stride);
    std::vector<float> sum(stride);
    int ready = down.first[static_cast<std::size_t>(begin)];
    for (std::int64_t y = begin; y < end; ++y) {
      const int first = down.first[static_cast<std::size_t>(y)];
      for (ready = std::max(ready, first); ready < first + down.count; ++ready) {
        resize_row(image.row(ready), image.channels, across, rows.data() + static_cast<std::size_t>(ready) % ring * stride);
      }
      std::fill(sum.begin(), sum.end(), 0.0F);
      for (int t = 0; t < down.count; ++t) {
        const float w = down.weight[static_cast<std::size_t>(y) * ring + static_cast<std::size_t>(t)];
        const float* row = rows.data() + static_cast<std::size_t>(first + t) % ring * stride;
        for (std::size_t i = 0; i < stride; ++i) sum[i] += w * row[i];
      }
      std::uint8_t* to = out.row(static_cast<int>(y));
      for (std::size_t i = 0; i < stride; ++i) to[i] = static_cast<std::uint8_t>(std::clamp(sum[i] + 0.5F, 0.0F, 255.0F));
    }
  });
  return out;
}

Image crop(const Image& image, int x, int y, int width, int height, std::uint8_t fill) {
  Image out = Image::blank(width, height, image.channels);
  if (fill != 0) std::fill(out.pixels.begin(), out.pixels.end(), fill);
  const std::int64_t left = std::max<std::int64_t>(x, 0);
  const std::int64_t right = std::min<std::int64_t>(static_cast<std::int64_t>(x) + width, image.width);
  if (right <= left) return out;
  const auto channels = static_cast<std::size_t>(image.channels);
  for (int v = 0; v < height; ++v) {
    const std::int64_t from = static_cast<std::int64_t>(y) + v;
    if (from < 0 || from >= image.height) continue;
    std::memcpy(out.row(v) + static_cast<std::size_t>(left - x) * channels,
                image.row(static_cast<int>(from)) + static_cast<std::size_t>(left) * channels,
                static_cast<std::size_t>(right - left) * channels);
  }
  return out;
}

namespace {

// The picture's size when scaled by the smaller (fit) or larger (cover) of the two ratios.
std::pair<int, int> scaled_size(const Image& image, int width, int height, bool cover) {
  const double a = static_cast<double>(width) / image.width;
  const double b = static_cast<double>(height) / image.height;
  const double s = cover ? std::max(a, b) : std::min(a, b);
  const auto side = [&](int n) { return static_cast<int>(std::clamp(std::round(n * s), 1.0, 65535.0)); };
  return {side(image.width), side(image.height)};
}

}  // namespace

Image letterbox(const Image& image, int width, int height, Filter filter, std::uint8_t fill, bool centered,
                Placement* placement) {
  const auto [w, h] = scaled_size(image, width, height, false);
  const int x = centered ? (width - w) / 2 : 0;
  const int y = centered ? (height - h) / 2 : 0;
  if (placement != nullptr) {
    *placement = {static_cast<double>(w) / image.width, static_cast<double>(h) / image.height, static_cast<double>(x),
                  static_cast<double>(y)};
  }
  return crop(resize(image, w, h, filter), -x, -y, width, height, fill);
}

Image center_crop(const Image& image, int width, int height, Filter filter, Placement* placement) {
  auto [w, h] = scaled_size(image, width, height, true);
  w = std::max(w, width);
  h = std::max(h, height);
  const int x = (w - width) / 2;
  const int y = (h - height) / 2;
  if (placement != nullptr) {
    *placement = {static_cast<double>(w) / image.width, static_cast<double>(h) / image.height, -static_cast<double>(x),
                  -static_cast<double>(y)};
  }
  return crop(resize(image, w, h, filter), x, y, width, height);
}

}  // namespace sdx::media
