// TGA: palette, colours and grey, plain or run-length encoded. Source: Truevision TGA file format specification, version 2.0.

#include <array>
#include <vector>

#include "media/byte_reader.h"
#include "media/codecs.h"
#include "media/image.h"

namespace sdx::media {
namespace {

constexpr std::uint64_t kHeader = 18;

struct Header {
  std::uint32_t kind = 0;  // 1: palette, 2: colours, 3: grey
  bool runs = false;
  std::uint64_t palette = 0, pixels = 0;
  std::uint32_t palette_first = 0, palette_count = 0, palette_bits = 0;
  std::uint32_t width = 0, height = 0, bits = 0;
  std::uint32_t alpha_bits = 0;
  bool from_right = false, from_top = false;

  std::uint32_t bytes() const { return (bits + 7) / 8; }
  std::uint32_t colour_bits() const { return kind == 1 ? palette_bits : bits; }
  bool alpha() const { return alpha_bits > 0 && (colour_bits() == 32 || colour_bits() == 16); }
};

bool is_colour(std::uint32_t bits) { return bits == 15 || bits == 16 || bits == 24 || bits == 32; }

// Why no TGA has this header; null where it makes sense.
const char* fault_of(const Header& h, std::uint32_t palette_kind) {
  if (palette_kind > 1 || (h.kind == 1 && palette_kind != 1)) return "its table of colours is of no known kind";
  if (h.width == 0 || h.height == 0) return "it has no pixels";
  if (palette_kind == 1 && !is_colour(h.palette_bits)) return "the colours of its table have no known size";
  const bool bits = h.kind == 2 ? is_colour(h.bits) : h.bits == 8 || h.bits == 16;
  return bits ? nullptr : "its pixels have no known size";
}

Header read_header(const ByteReader& r) {
  Header h;
  const std::uint32_t palette_kind = r.u8(1), kind = r.u8(2);
  h.kind = kind & 7U;
  h.runs = (kind & 8U) != 0;
  if ((kind & ~11U) != 0 || h.kind == 0) r.damaged("it is of no known kind");
  h.palette_first = r.u16(3);
  h.palette_count = palette_kind == 1 ? r.u16(5) : 0;
  h.palette_bits = palette_kind == 1 ? r.u8(7) : 0;
  h.width = r.u16(12);
  h.height = r.u16(14);
  h.bits = r.u8(16);
  const std::uint32_t flags = r.u8(17);
  h.alpha_bits = flags & 15U;
  h.from_right = (flags & 16U) != 0;
  h.from_top = (flags & 32U) != 0;
  if ((flags & 0xC0U) != 0) r.damaged("its rows are interleaved");
  if (const char* why = fault_of(h, palette_kind)) r.damaged(why);
  h.palette = kHeader + r.u8(0);
  h.pixels = h.palette + std::uint64_t{h.palette_count} * ((h.palette_bits + 7) / 8);
  return h;
}

using Colour = std::array<std::uint8_t, 4>;  // red, green, blue, opacity

Colour colour_at(const std::byte* p, std::uint32_t bits) {
  const auto byte = [p](int i) { return static_cast<std::uint8_t>(p[i]); };
  if (bits >= 24) return {byte(2), byte(1), byte(0), bits == 32 ? byte(3) : std::uint8_t{255}};
  const unsigned value = byte(0) | static_cast<unsigned>(byte(1)) << 8;
  const auto part = [value](unsigned shift) { return static_cast<std::uint8_t>((value >> shift & 31U) * 255 / 31); };
  return {part(10), part(5), part(0), static_cast<std::uint8_t>((value & 0x8000U) != 0 ? 255 : 0)};
}

// The picture's pixels as the file has them, one after the other.
class Source {
 public:
  Source(const ByteReader& r, const Header& h) : r_(r), h_(h), at_(h.pixels) {
    for (std::uint32_t i = 0; i < h.palette_count; ++i) {
      const std::uint32_t size = (h.palette_bits + 7) / 8;
      palette_.push_back(colour_at(r.part(h.palette + std::uint64_t{i} * size, size).data(), h.palette_bits));
    }
  }

  Colour next() {
    if (!h_.runs) return raw();
    if (left_ == 0) {
      const std::uint32_t packet = r_.u8(at_++);
      left_ = (packet & 127U) + 1;
      repeated_ = (packet & 128U) != 0;
      if (repeated_) colour_ = raw();
    }
    --left_;
    return repeated_ ? colour_ : raw();
  }

 private:
  Colour raw() {
    const std::byte* p = r_.part(at_, h_.bytes()).data();
    at_ += h_.bytes();
    if (h_.kind == 2) return colour_at(p, h_.bits);
    const auto low = static_cast<std::uint32_t>(p[0]);
    if (h_.kind == 3) {
      const auto grey = static_cast<std::uint8_t>(low);
      return {grey, grey, grey, h_.bits == 16 ? static_cast<std::uint8_t>(p[1]) : std::uint8_t{255}};
    }
    const std::uint32_t index = h_.bits == 16 ? low | static_cast<std::uint32_t>(p[1]) << 8 : low;
    if (index < h_.palette_first || index - h_.palette_first >= palette_.size()) r_.damaged("a colour that its table has not");
    return palette_[index - h_.palette_first];
  }

  const ByteReader& r_;
  const Header& h_;
  std::uint64_t at_;
  std::vector<Colour> palette_;
  std::uint32_t left_ = 0;
  bool repeated_ = false;
  Colour colour_{};
};

}  // namespace

// The format has no signature: a header that makes sense, and either version 2's footer or room for the pixels.
bool looks_like_tga(std::span<const std::byte> bytes) noexcept {
  constexpr std::string_view kFooter{"TRUEVISION-XFILE.\0", 18};
  try {
    const ByteReader r(bytes, "TGA");
    const Header h = read_header(r);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (text.ends_with(kFooter)) return true;
    const std::uint64_t pixels = std::uint64_t{h.width} * h.height;
    // A run is of 128 pixels at most.
    const std::uint64_t least = h.runs ? (pixels + 127) / 128 * (1 + h.bytes()) : pixels * h.bytes();
    return h.pixels <= bytes.size() && least <= bytes.size() - h.pixels;
  } catch (const std::exception&) {
    return false;
  }
}

Image decode_tga(std::span<const std::byte> bytes, const DecodeLimits& limits) {
  const ByteReader r(bytes, "TGA");
  const Header h = read_header(r);
  check_size(h.width, h.height, limits);
  Image image = Image::blank(static_cast<int>(h.width), static_cast<int>(h.height), h.alpha() ? 4 : 3);
  const auto channels = static_cast<std::size_t>(image.channels);
  Source source(r, h);
  for (int i = 0; i < image.height; ++i) {
    std::uint8_t* row = image.row(h.from_top ? i : image.height - 1 - i);
    for (int k = 0; k < image.width; ++k) {
      const Colour colour = source.next();
      std::uint8_t* out = row + static_cast<std::size_t>(h.from_right ? image.width - 1 - k : k) * channels;
      for (std::size_t c = 0; c < channels; ++c) out[c] = colour[c];
    }
  }
  return image;
}

ImageInfo probe_tga(std::span<const std::byte> bytes) {
  const Header h = read_header(ByteReader(bytes, "TGA"));
  ImageInfo info;
  info.stored_width = static_cast<int>(h.width);
  info.stored_height = static_cast<int>(h.height);
  info.alpha = h.alpha();
  return info;
}

}  // namespace sdx::media
