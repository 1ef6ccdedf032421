// Colour balance, tone and saturation: each pixel by itself.
#include <algorithm>
#include <array>
#include <cmath>

#include "vision/enhance/steps.h"

namespace sdx::vision {
namespace {

using media::Image;
using Curve = std::array<std::uint8_t, 256>;

std::uint8_t byte_of(double v) { return static_cast<std::uint8_t>(std::clamp(v + 0.5, 0.0, 255.0)); }

// 0 to 1, IEC 61966-2-1.
double to_linear(double v) { return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4); }
double from_linear(double v) { return v <= 0.0031308 ? v * 12.92 : 1.055 * std::pow(v, 1 / 2.4) - 0.055; }

void apply(Image& picture, const std::array<const Curve*, 3>& curves) {
  const auto channels = static_cast<std::size_t>(picture.channels);
  std::uint8_t* p = picture.pixels.data();
  std::uint8_t* const end = p + picture.pixels.size();
  for (; p != end; p += channels) {
    for (std::size_t c = 0; c < std::min<std::size_t>(channels, 3); ++c) p[c] = (*curves[c])[p[c]];
  }
}

}  // namespace

void balance_colours(Image& picture) {
  const auto channels = static_cast<std::size_t>(picture.channels);
  // 65536 / greatest colour.
  std::array<std::uint32_t, 256> inverse{};
  for (std::uint32_t v = 1; v < inverse.size(); ++v) inverse[v] = 65536 / v;
  std::array<std::uint64_t, 3> sum{};
  for (std::size_t i = 0; i < picture.pixels.size(); i += channels) {
    const std::uint8_t* p = picture.pixels.data() + i;
    const std::uint8_t low = std::min({p[0], p[1], p[2]}), high = std::max({p[0], p[1], p[2]});
    if (low > 250 || high < 5) continue;
    const std::uint32_t greyness = low * inverse[high] >> 8;  // 256 * least / greatest
    const std::uint32_t weight = (greyness * greyness >> 8) + 5;
    for (std::size_t c = 0; c < 3; ++c) sum[c] += static_cast<std::uint64_t>(weight) * p[c];
  }
  if (sum[0] + sum[1] + sum[2] == 0) return;
  constexpr std::array kLuma{0.299, 0.587, 0.114};
  const double grey =
      kLuma[0] * static_cast<double>(sum[0]) + kLuma[1] * static_cast<double>(sum[1]) + kLuma[2] * static_cast<double>(sum[2]);
  std::array<Curve, 3> curves;
  for (std::size_t c = 0; c < 3; ++c) {
    const double gain = std::clamp(grey / std::max(1.0, static_cast<double>(sum[c])), 0.5, 2.0);
    for (std::size_t v = 0; v < 256; ++v) curves[c][v] = byte_of(static_cast<double>(v) * gain);
  }
  apply(picture, {&curves[0], &curves[1], &curves[2]});
}

void tone(Image& picture, const faces::Enhance& settings) {
  if (settings.exposure == 0 && settings.brightness == 1 && settings.contrast == 1) return;
  const double gain = std::exp2(settings.exposure);
  Curve curve;
  for (std::size_t i = 0; i < curve.size(); ++i) {
    double v = static_cast<double>(i);
    if (settings.exposure != 0) v = 255 * from_linear(std::min(1.0, to_linear(v / 255) * gain));
    curve[i] = byte_of(127.5 + (v * settings.brightness - 127.5) * settings.contrast);
  }
  apply(picture, {&curve, &curve, &curve});
}

void saturate(Image& picture, double saturation) {
  const auto channels = static_cast<std::size_t>(picture.channels);
  // 14 bits after the point for luma, 12 for the factor: right to a level, and integers are four times as fast.
  const int factor = static_cast<int>(saturation * 4096 + 0.5);
  std::uint8_t* p = picture.pixels.data();
  std::uint8_t* const end = p + picture.pixels.size();
  for (; p != end; p += channels) {
    const int luma = (4899 * p[0] + 9617 * p[1] + 1868 * p[2] + 8192) >> 14;
    for (std::size_t c = 0; c < 3; ++c) {
      p[c] = static_cast<std::uint8_t>(std::clamp(luma + (((p[c] - luma) * factor + 2048) >> 12), 0, 255));
    }
  }
}

}  // namespace sdx::vision
