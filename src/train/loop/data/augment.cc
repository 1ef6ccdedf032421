#include "train/loop/data/augment.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace sdx::train::loop {
namespace {

constexpr int kShift = 8;  // of a side: one eighth
constexpr double kJitter = 0.2;

void flip(media::Image& image) {
  const auto channels = static_cast<std::size_t>(image.channels);
  for (int y = 0; y < image.height; ++y) {
    std::uint8_t* left = image.row(y);
    std::uint8_t* right = left + image.stride() - channels;
    for (; left < right; left += channels, right -= channels) std::swap_ranges(left, left + channels, right);
  }
}

void shift(media::Image& image, int dx, int dy) {
  const media::Image from = image;
  const int channels = image.channels;
  for (int y = 0; y < image.height; ++y) {
    const std::uint8_t* const source = from.row(std::clamp(y + dy, 0, image.height - 1));
    std::uint8_t* to = image.row(y);
    for (int x = 0; x < image.width; ++x, to += channels) {
      const std::uint8_t* const pixel = source + std::clamp(x + dx, 0, image.width - 1) * channels;
      std::copy(pixel, pixel + channels, to);
    }
  }
}

double luma(const std::uint8_t* pixel, int channels) {  // ITU-R BT.601
  return channels == 3 ? 0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2] : pixel[0];
}

// Towards black, towards the picture's mean, towards each pixel's own grey; a factor above 1 leads away from there.
void jitter(media::Image& image, double brightness, double contrast, double saturation) {
  const auto channels = static_cast<std::size_t>(image.channels);
  double mean = 0;
  for (std::size_t i = 0; i < image.pixels.size(); i += channels) mean += luma(&image.pixels[i], image.channels);
  mean *= brightness * static_cast<double>(channels) / static_cast<double>(image.pixels.size());
  for (std::size_t i = 0; i < image.pixels.size(); i += channels) {
    const double grey = luma(&image.pixels[i], image.channels);
    for (std::size_t c = 0; c < channels; ++c) {
      double v = (grey + saturation * (image.pixels[i + c] - grey)) * brightness;
      v = mean + contrast * (v - mean);
      image.pixels[i + c] = static_cast<std::uint8_t>(std::clamp(std::nearbyint(v), 0.0, 255.0));
    }
  }
}

int within(Random& random, int most) { return static_cast<int>(random.below(2 * static_cast<std::size_t>(most) + 1)) - most; }

double factor(Random& random) { return 1 + kJitter * (2 * random.uniform() - 1); }

}  // namespace

Augmentation augmentation_of(std::string_view text) {
  Augmentation a;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view word = text.substr(0, end);
    if (word == "flip") {
      a.flip = true;
    } else if (word == "crop") {
      a.crop = true;
    } else if (word == "colour" || word == "color") {
      a.colour = true;
    } else {
      fail(ErrorCode::invalid_argument, "'{}' is not an augmentation; permitted: flip, crop, colour, joined by commas", word);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return a;
}

void augment(media::Image& image, const Augmentation& how, Random& random) {
  if (image.pixels.empty()) return;
  if (how.flip && random.uniform() < 0.5) flip(image);
  if (how.crop) {
    const int dx = within(random, image.width / kShift), dy = within(random, image.height / kShift);
    shift(image, dx, dy);
  }
  if (how.colour) {
    const double brightness = factor(random), contrast = factor(random), saturation = factor(random);
    jitter(image, brightness, contrast, saturation);
  }
}

}  // namespace sdx::train::loop
