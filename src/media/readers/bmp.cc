// Windows bitmaps: 1, 4, 8, 16, 24 and 32 bits a pixel, not compressed, and BITFIELDS masks. Source: BITMAPINFOHEADER,
// BITMAPV4HEADER in the Windows documentation.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
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
  double dpi = 0;
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
  h.dpi = static_cast<std::int32_t>(r.u32(38)) > 0 ? r.u32(38) * 0.0254 : 0;
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

Image decode_bmp(std::span<const std::byte> bytes, const DecodeLimits& limits, double* dpi) {
  const ByteReader r(bytes, "BMP");
  const Header h = read_header(r);
  if (dpi != nullptr) *dpi = h.dpi;
  check_size(h.width, h.height, limits);
  const bool indexed = h.bits == 1 || h.bits == 4 || h.bits == 8;
  if (!indexed && h.bits != 16 && h.bits != 24 && h.bits != 32) r.damaged("it has an odd number of bits a pixel");
  if (indexed && h.colors > 256) r.damaged("its palette is too long");
  const auto stride = (static_cast<std::uint64_t>(h.width) * h.bits + 31) / 32 * 4;
  const auto pixels = r.part(h.pixels, stride * static_cast<std::uint64_t>(h.height));  // before memory is taken
  Image image = Image::blank(static_cast<int>(h.width), static_cast<int>(h.height), h.masks[3] != 0 ? 4 : 3);
  for (int y = 0; y < image.height; ++y) {
    const std::uint64_t line = h.pixels + stride * static_cast<std::uint64_t>(h.top_down ? y : image.height - 1 - y);
    std::uint8_t* to = image.row(y);
    if (h.bits == 24 && image.channels == 3) {
      const auto* from = reinterpret_cast<const std::uint8_t*>(pixels.data()) + (line - h.pixels);
      for (int x = 0; x < image.width; ++x, from += 3, to += 3) to[0] = from[2], to[1] = from[1], to[2] = from[0];
      continue;
    }
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

ImageInfo probe_bmp(std::span<const std::byte> bytes) {
  const Header h = read_header(ByteReader(bytes, "BMP"));
  ImageInfo info;
  info.stored_width = static_cast<int>(std::min<std::int64_t>(h.width, INT32_MAX));
  info.stored_height = static_cast<int>(std::min<std::int64_t>(h.height, INT32_MAX));
  info.alpha = h.masks[3] != 0;
  return info;
}

// Pictures with opacity get a BITMAPV4HEADER with masks, which present readers know; others the plain header of 40 bytes.
std::string write_bmp(const Image& image, const Writing& writing) {
  const bool alpha = image.channels == 4;
  const std::size_t header = alpha ? 108 : 40;
  const auto width = static_cast<std::size_t>(image.width), height = static_cast<std::size_t>(image.height);
  const std::size_t stride = (width * (alpha ? 4 : 3) + 3) / 4 * 4;
  const std::size_t size = 14 + header + stride * height;
  if (size > UINT32_MAX) fail(ErrorCode::invalid_argument, "a BMP file of {} bytes; the format holds up to 4 GiB", size);
  std::string out(size, '\0');
  const auto put = [&out](std::size_t at, std::size_t bytes, std::size_t value) {
    for (std::size_t i = 0; i < bytes; ++i) out[at + i] = static_cast<char>(value >> (8 * i));
  };
  const auto per_metre = static_cast<std::size_t>(std::lround(writing.dpi / 0.0254));
  put(0, 2, 'B' | 'M' << 8), put(2, 4, size), put(10, 4, 14 + header);
  put(14, 4, header), put(18, 4, width), put(22, 4, height), put(26, 2, 1), put(28, 2, alpha ? 32 : 24);
  put(30, 4, alpha ? 3 : 0), put(34, 4, stride * height), put(38, 4, per_metre), put(42, 4, per_metre);
  if (alpha) {
    put(54, 4, 0xFF0000), put(58, 4, 0xFF00), put(62, 4, 0xFF), put(66, 4, 0xFF000000);
    put(70, 4, 0x73524742);  // sRGB
  }
  for (std::size_t y = 0; y < height; ++y) {
    const std::uint8_t* from = image.row(static_cast<int>(height - 1 - y));
    char* to = out.data() + 14 + header + y * stride;
    for (std::size_t x = 0; x < width; ++x, from += image.channels) {
      for (int c = 2; c >= 0; --c) *to++ = static_cast<char>(from[image.channels == 1 ? 0 : c]);
      if (alpha) *to++ = static_cast<char>(from[3]);
    }
  }
  return out;
}

}  // namespace sdx::media
