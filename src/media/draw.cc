#include <algorithm>
#include <cstdint>

#include "media/image.h"

namespace sdx::media {
namespace {

void put(Image& image, std::int64_t x, std::int64_t y, Ink ink) {
  std::uint8_t* p = image.row(static_cast<int>(y)) + static_cast<std::size_t>(x) * static_cast<std::size_t>(image.channels);
  if (image.channels == 1) {
    p[0] = static_cast<std::uint8_t>((ink.red * 19595 + ink.green * 38470 + ink.blue * 7471 + 32768) >> 16);
    return;
  }
  p[0] = ink.red;
  p[1] = ink.green;
  p[2] = ink.blue;
  if (image.channels == 4) p[3] = 255;
}

// 15 bits: rows of three from the top, the leftmost pixel highest.
std::uint16_t glyph(char c) {
  constexpr std::uint16_t kDigits[] = {0b111101101101111, 0b010110010010111, 0b111001111100111, 0b111001111001111,
                                       0b101101111001001, 0b111100111001111, 0b111100111101111, 0b111001001001001,
                                       0b111101111101111, 0b111101111001111};
  if (c >= '0' && c <= '9') return kDigits[c - '0'];
  if (c == '.') return 0b000000000000010;
  if (c == '-') return 0b000000111000000;
  if (c == '%') return 0b101001010100101;
  return 0;
}

}  // namespace

void fill_rectangle(Image& image, int x, int y, int width, int height, Ink ink) {
  check_pixels(image);
  const std::int64_t right = std::min<std::int64_t>(std::int64_t{x} + width, image.width);
  const std::int64_t bottom = std::min<std::int64_t>(std::int64_t{y} + height, image.height);
  for (std::int64_t v = std::max(y, 0); v < bottom; ++v) {
    for (std::int64_t u = std::max(x, 0); u < right; ++u) put(image, u, v, ink);
  }
}

void draw_rectangle(Image& image, int x, int y, int width, int height, Ink ink, int thickness) {
  if (width <= 0 || height <= 0) return;
  const int t = std::clamp(thickness, 1, std::max(1, std::min(width, height) / 2));
  const auto edge = [](std::int64_t at) { return static_cast<int>(std::clamp<std::int64_t>(at, INT32_MIN, INT32_MAX)); };
  fill_rectangle(image, x, y, width, t, ink);
  fill_rectangle(image, x, edge(std::int64_t{y} + height - t), width, t, ink);
  fill_rectangle(image, x, y, t, height, ink);
  fill_rectangle(image, edge(std::int64_t{x} + width - t), y, t, height, ink);
}

void draw_disc(Image& image, int x, int y, int radius, Ink ink) {
  check_pixels(image);
  const std::int64_t r = std::clamp(radius, 0, 65535);
  for (std::int64_t v = std::max<std::int64_t>(y - r, 0); v <= std::min<std::int64_t>(y + r, image.height - 1); ++v) {
    for (std::int64_t u = std::max<std::int64_t>(x - r, 0); u <= std::min<std::int64_t>(x + r, image.width - 1); ++u) {
      if ((u - x) * (u - x) + (v - y) * (v - y) <= r * r) put(image, u, v, ink);
    }
  }
}

void draw_number(Image& image, int x, int y, std::string_view text, Ink ink, int size) {
  const int s = std::clamp(size, 1, 1000);
  std::int64_t left = x;
  for (const char c : text) {
    const std::uint16_t bits = glyph(c);
    for (int i = 0; i < 15 && left < image.width && left > INT32_MIN / 2; ++i) {
      if ((bits >> (14 - i) & 1) == 0) continue;
      const std::int64_t top = std::int64_t{y} + (i / 3) * s;
      if (top < -65536 || top > 65536) continue;
      fill_rectangle(image, static_cast<int>(left + (i % 3) * s), static_cast<int>(top), s, s, ink);
    }
    left += 4 * s;
  }
}

}  // namespace sdx::media
