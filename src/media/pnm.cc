// Portable bitmaps, greymaps and pixmaps, as text (P1, P2, P3) and binary (P4, P5, P6). Source: Netpbm's pbm(5), pgm(5), ppm(5).

#include "media/byte_reader.h"
#include "media/codecs.h"

namespace sdx::media {
namespace {

class Scanner {
 public:
  Scanner(const ByteReader& r, std::uint64_t at) : r_(r), at_(at) {}

  std::int64_t number() {
    skip();
    if (!digit()) r_.damaged("expected a number");
    std::int64_t value = 0;
    while (digit() && value < 1'000'000) value = value * 10 + (r_.u8(at_++) - '0');
    return value;
  }
  // A pixel of P1: its digits may stand without space between them.
  bool bit() {
    skip();
    if (!digit()) r_.damaged("expected 0 or 1");
    return r_.u8(at_++) != '0';
  }
  // Behind the single space that ends a binary file's header.
  std::uint64_t data() const { return at_ + 1; }

 private:
  bool digit() const { return at_ < r_.size() && r_.u8(at_) >= '0' && r_.u8(at_) <= '9'; }
  void skip() {
    while (at_ < r_.size()) {
      const std::uint32_t c = r_.u8(at_);
      if (c == '#') {
        while (at_ < r_.size() && r_.u8(at_) != '\n') ++at_;
      } else if (c == ' ' || (c >= '\t' && c <= '\r')) {
        ++at_;
      } else {
        return;
      }
    }
  }
  const ByteReader& r_;
  std::uint64_t at_;
};

}  // namespace

Image decode_pnm(std::span<const std::byte> bytes, const DecodeLimits& limits) {
  const ByteReader r(bytes, "PNM", true);
  const std::uint32_t kind = r.u8(1) - '0';
  const bool text = kind <= 3;
  const bool bitmap = kind == 1 || kind == 4;
  const std::uint64_t samples = kind == 3 || kind == 6 ? 3 : 1;
  Scanner scan(r, 2);
  const std::int64_t width = scan.number(), height = scan.number();
  check_size(width, height, limits);
  const std::int64_t most = bitmap ? 1 : scan.number();
  if (most < 1 || most > 65535) r.damaged("its largest value must be 1 to 65535");
  const std::uint64_t bits = bitmap ? 1 : most > 255 ? 16 : 8;
  const std::uint64_t stride = (static_cast<std::uint64_t>(width) * samples * bits + 7) / 8;
  // Before memory is taken: a text file has at least one byte a sample.
  r.part(text ? 2 : scan.data(),
         (text ? static_cast<std::uint64_t>(width) * samples : stride) * static_cast<std::uint64_t>(height));
  Image image = Image::blank(static_cast<int>(width), static_cast<int>(height), 3);
  for (int y = 0; y < image.height; ++y) {
    const std::uint64_t line = scan.data() + stride * static_cast<std::uint64_t>(y);
    std::uint8_t* to = image.row(y);
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(width) * samples; ++i) {
      std::int64_t v = 0;
      if (bitmap) {
        const bool black = text ? scan.bit() : (r.u8(line + i / 8) >> (7 - i % 8) & 1U) != 0;
        v = black ? 0 : 1;
      } else {
        v = text ? scan.number() : bits == 16 ? r.u16(line + i * 2) : r.u8(line + i);
      }
      const auto value = static_cast<std::uint8_t>((std::min(v, most) * 255 + most / 2) / most);
      *to++ = value;
      if (samples == 1) *to++ = value, *to++ = value;
    }
  }
  return image;
}

}  // namespace sdx::media
