#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "media/codecs.h"

namespace sdx::media {
namespace {

// The side of the upright picture at which the stored rows and columns begin. Source: EXIF 2.32, tag 0x0112.
struct Turn {
  bool swap, flip_x, flip_y;  // exchanged first, then mirrored
};

Turn turn_of(int o) { return {o >= 5, o == 2 || o == 3 || o == 6 || o == 7, o == 3 || o == 4 || o == 7 || o == 8}; }

// Moves three bytes as four; the next pixel overwrites the last. That takes half the instructions, but is not possible if the
// fourth byte would be beyond the end of the picture.
template <int kChannels, int kMoved>
void move_run(const std::uint8_t* from, std::ptrdiff_t step, std::uint8_t* to, int count) {
  for (int u = 0; u + 1 < count; ++u, from += step, to += kChannels) std::memcpy(to, from, kMoved);
  std::memcpy(to, from, kChannels);
}

template <int kChannels>
void turn_pixels(const Image& image, Image& out, const Turn& turn) {
  // Squares, so that the columns read here and the rows written there stay in the cache.
  constexpr int kSide = 64;
  const int wide = turn.swap ? kSide : out.width;
  constexpr int kMoved = kChannels + (kChannels == 3 ? 1 : 0);
  const auto step = static_cast<std::ptrdiff_t>(turn.swap ? image.stride() : kChannels) * (turn.flip_x ? -1 : 1);
  const std::uint8_t* const last = image.pixels.size() < kMoved ? nullptr : image.pixels.data() + image.pixels.size() - kMoved;
  for (int v0 = 0; v0 < out.height; v0 += kSide) {
    const int v1 = std::min(v0 + kSide, out.height);
    for (int u0 = 0; u0 < out.width; u0 += wide) {
      const int count = std::min(wide, out.width - u0);
      for (int v = v0; v < v1; ++v) {
        const int across = turn.flip_x ? out.width - 1 - u0 : u0;
        const int down = turn.flip_y ? out.height - 1 - v : v;
        const std::uint8_t* from = image.row(turn.swap ? across : down) + (turn.swap ? down : across) * kChannels;
        std::uint8_t* to = out.row(v) + u0 * kChannels;
        if (from <= last && from + step * (count - 1) <= last) {
          move_run<kChannels, kMoved>(from, step, to, count);
        } else {
          move_run<kChannels, kChannels>(from, step, to, count);
        }
      }
    }
  }
}

}  // namespace

Image apply_orientation(Image image, int orientation) {
  if (orientation < 2 || orientation > 8) return image;
  const Turn turn = turn_of(orientation);
  Image out = Image::blank(turn.swap ? image.height : image.width, turn.swap ? image.width : image.height, image.channels);
  if (image.channels == 1) turn_pixels<1>(image, out, turn);
  if (image.channels == 3) turn_pixels<3>(image, out, turn);
  if (image.channels == 4) turn_pixels<4>(image, out, turn);
  return out;
}

Rectangle to_stored(Rectangle r, int upright_width, int upright_height, int orientation) {
  const Turn turn = turn_of(orientation);
  if (turn.flip_x) r.x = upright_width - r.x - r.width;
  if (turn.flip_y) r.y = upright_height - r.y - r.height;
  if (turn.swap) return {r.y, r.x, r.height, r.width};
  return r;
}

Rectangle to_upright(Rectangle r, int stored_width, int stored_height, int orientation) {
  const Turn turn = turn_of(orientation);
  if (turn.swap) {
    std::swap(stored_width, stored_height);
    r = {r.y, r.x, r.height, r.width};
  }
  if (turn.flip_x) r.x = stored_width - r.x - r.width;
  if (turn.flip_y) r.y = stored_height - r.y - r.height;
  return r;
}

Rectangle stored_region(const Rectangle& region, int stored_width, int stored_height, int orientation) {
  const bool swap = turn_of(orientation).swap;
  const int width = swap ? stored_height : stored_width;
  const int height = swap ? stored_width : stored_height;
  const auto clip = [](std::int64_t at, std::int64_t size, int limit) {
    const std::int64_t first = std::clamp<std::int64_t>(at, 0, limit);
    return std::pair<int, int>(first, std::clamp<std::int64_t>(at + size, first, limit) - first);
  };
  const auto [x, w] = clip(region.x, region.width, width);
  const auto [y, h] = clip(region.y, region.height, height);
  if (w == 0 || h == 0) {
    fail(ErrorCode::invalid_argument, "the region {}x{} at ({}, {}) lies outside the picture of {}x{}", region.width,
         region.height, region.x, region.y, width, height);
  }
  return to_stored({x, y, w, h}, width, height, orientation);
}

Image cut(const Image& image, const Rectangle& part) {
  Image out = Image::blank(part.width, part.height, image.channels);
  for (int y = 0; y < part.height; ++y) {
    std::memcpy(out.row(y), image.row(part.y + y) + static_cast<std::size_t>(part.x) * static_cast<std::size_t>(image.channels),
                out.stride());
  }
  return out;
}

void inks_to_rgb(Image& image) {
  const std::size_t count = static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height);
  const std::uint8_t* from = image.pixels.data();
  std::uint8_t* to = image.pixels.data();
  for (std::size_t i = 0; i < count; ++i, from += 4, to += 3) {
    const unsigned light[3] = {255U - from[0], 255U - from[1], 255U - from[2]};
    const unsigned black = 255U - from[3];
    for (int c = 0; c < 3; ++c) to[c] = static_cast<std::uint8_t>((light[c] * black + 127) / 255);
  }
  image.channels = 3;
  image.pixels.resize(count * 3);
}

}  // namespace sdx::media
