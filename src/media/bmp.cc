// Windows bitmaps: 1, 4, 8, 16, 24 and 32 bits a pixel, not compressed, and BITFIELDS masks. Source: BITMAPINFOHEADER,
// BITMAPV4HEADER in the Windows documentation.

#include <array>
#include <bit>
#include <cstdlib>

#include "media/byte_reader.h"
#include "media/codecs.h"

namespace sdx::media {
namespace {

struct Header {
  std::uint64_t pixels = 0, palette = 0;
  std::int64_t width = 0, height = 0;
  bool top_down = false;
  std::uint32_t bits = 0, colors = 0, entry = 4;
  std::array<std::uint32_t, 4> masks{};  // red, green, blue, opacity
};

Header read_header(const ByteReader& r) {
  Header h;
  h.pixels = r.u32(10);
  const std::uint32_t size = r.u32(14);
  if (size == 12) {  // OS/2
    h.width = r.u16(18);
    h.height = r.u16(20);
    h.bits = r.u16(24);
    h.entry = 3;
    h.palette = 26;
    h.colors = h.bits <= 8 ? 1U << h.bits : 0;
    return h;
  }
  if (size < 40) r.damaged("its header is too short");
  h.width = static_cast<std::int32_t>(r.u32(18));
  h.height = static_cast<std::int32_t>(r.u32(22));
  h.top_down = h.height < 0;
  h.height = std::abs(h.height);
  h.bits = r.u16(28);
  const std::uint32_t compression = r.u32(30);
  const bool fields = compression == 3 || compression == 6;
  if (compression != 0 && !fields) r.damaged("it is compressed");
  h.colors = r.u32(46);
  if (h.colors == 0 && h.bits <= 8) h.colors = 1U << h.bits;
  if (h.bits == 16) h.masks = {0x7C00, 0x03E0, 0x001F, 0};
  if (h.bits == 32) h.masks = {0xFF0000, 0xFF00, 0xFF, 0};
  if (fields) {
    for (unsigned i = 0; i < (size >= 56 || compression == 6 ? 4U : 3U); ++i) h.masks[i] = r.u32(54 + 4 * i);
  }
  h.palette = 14 + std::uint64_t{size} + (fields && size == 40 ? (compression == 6 ? 16U : 12U) : 0U);
  return h;
}

// The bits of `mask`, stretched to 8.
std::uint8_t channel(std::uint32_t value, std::uint32_t mask) {
  if (mask == 0) return 0;
  const std::uint64_t most = mask >> std::countr_zero(mask);
  const std::uint64_t v = (value & mask) >> std::countr_zero(mask);
  return static_cast<std::uint8_t>((v * 255 + most / 2) / most);
}

}  // namespace

Image decode_bmp(std::span<const std::byte> bytes, const DecodeLimits& limits) {
  const ByteReader r(bytes, "BMP");
  const Header h = read_header(r);
  check_size(h.width, h.height, limits);
  const bool indexed = h.bits == 1 || h.bits == 4 || h.bits == 8;
  if (!indexed && h.bits != 16 && h.bits != 24 && h.bits != 32) r.damaged("it has an odd number of bits a pixel");
  if (indexed && h.colors > 256) r.damaged("its palette is too long");
  const auto stride = (static_cast<std::uint64_t>(h.width) * h.bits + 31) / 32 * 4;
  r.part(h.pixels, stride * static_cast<std::uint64_t>(h.height));  // before memory is taken
  Image image = Image::blank(static_cast<int>(h.width), static_cast<int>(h.height), h.masks[3] != 0 ? 4 : 3);
  for (int y = 0; y < image.height; ++y) {
    const std::uint64_t line = h.pixels + stride * static_cast<std::uint64_t>(h.top_down ? y : image.height - 1 - y);
    std::uint8_t* to = image.row(y);
    for (std::uint64_t x = 0; x < static_cast<std::uint64_t>(image.width); ++x, to += image.channels) {
      if (indexed) {
        const std::uint64_t bit = x * h.bits;
        const std::uint32_t index = r.u8(line + bit / 8) >> (8 - h.bits - bit % 8) & ((1U << h.bits) - 1);
        if (index >= h.colors) r.damaged("a pixel is outside its palette");
        for (unsigned c = 0; c < 3; ++c) to[c] = static_cast<std::uint8_t>(r.u8(h.palette + index * h.entry + 2 - c));
      } else if (h.bits == 24) {
        for (unsigned c = 0; c < 3; ++c) to[c] = static_cast<std::uint8_t>(r.u8(line + x * 3 + 2 - c));
      } else {
        const std::uint32_t value = h.bits == 16 ? r.u16(line + x * 2) : r.u32(line + x * 4);
        for (int c = 0; c < image.channels; ++c) to[c] = channel(value, h.masks[static_cast<std::size_t>(c)]);
      }
    }
  }
  return image;
}

}  // namespace sdx::media
