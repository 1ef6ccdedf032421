#pragma once
// Marks on result pictures.

#include <cstdint>
#include <string_view>

#include "media/image.h"

namespace sdx::media {

struct Ink {
  std::uint8_t red = 0, green = 0, blue = 0;
};

// All of them clip at the picture's edges and accept any coordinates.
void fill_rectangle(Image& image, int x, int y, int width, int height, Ink ink);
void draw_rectangle(Image& image, int x, int y, int width, int height, Ink ink, int thickness = 2);  // grows inwards
void draw_disc(Image& image, int x, int y, int radius, Ink ink);
// Digits, '.', '%', '-' and ' ' in a 3 x 5 grid of squares of `size` pixels, 4 squares apart; other letters leave a gap.
void draw_number(Image& image, int x, int y, std::string_view text, Ink ink, int size = 2);

}  // namespace sdx::media
