// Portable bitmaps, greymaps and pixmaps, as text (P1, P2, P3) and binary (P4, P5, P6), and the arbitrary map (P7). Source:
// Netpbm's pbm(5), pgm(5), ppm(5), pam(5).

#include <algorithm>
#include <cstring>

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
  // Letters up to the next space.
  std::string word() {
    skip();
    std::string out;
    for (; at_ < r_.size() && r_.u8(at_) > ' ' && out.size() < 32; ++at_) out += static_cast<char>(r_.u8(at_));
    return out;
  }
  void end_line() {
    while (at_ < r_.size() && r_.u8(at_) != '\n') ++at_;
  }
  // The position after the single space that ends a binary file's header.
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

void read_pam(const ByteReader& r, Scanner& scan, PnmHeader& h) {
  h.samples = 0;
  for (std::string word = scan.word(); word != "ENDHDR"; word = scan.word()) {
    if (word == "WIDTH") {
      h.width = scan.number();
    } else if (word == "HEIGHT") {
      h.height = scan.number();
    } else if (word == "MAXVAL") {
      h.most = scan.number();
    } else if (word == "DEPTH") {
      h.samples = static_cast<int>(std::min<std::int64_t>(scan.number(), 1000));
    } else if (word == "TUPLTYPE") {
      scan.end_line();  // the number of samples says it
    } else {
      r.damaged("its header");
    }
  }
  if (h.samples < 1 || h.samples > 4) r.damaged("its depth must be 1 to 4");
}

PnmHeader header_of(const ByteReader& r) {
  PnmHeader h;
  h.kind = static_cast<int>(r.u8(1)) - '0';
  Scanner scan(r, 2);
  const bool bitmap = h.kind == 1 || h.kind == 4;
  if (h.kind == 7) {
    read_pam(r, scan, h);
  } else {
    h.samples = h.kind == 3 || h.kind == 6 ? 3 : 1;
    h.width = scan.number();
    h.height = scan.number();
    h.most = bitmap ? 1 : scan.number();
  }
  if (h.most < 1 || h.most > 65535) r.damaged("its largest value must be 1 to 65535");
  h.data = scan.data();
  const std::uint64_t bits = bitmap ? 1 : h.most > 255 ? 16 : 8;
  const auto row = static_cast<std::uint64_t>(h.width) * static_cast<std::uint64_t>(h.samples);  // below 2^22
  h.bytes =
      h.kind <= 3 ? row * static_cast<std::uint64_t>(h.height) : (row * bits + 7) / 8 * static_cast<std::uint64_t>(h.height);
  return h;
}

// Keeps the high byte of 16 bits.
std::uint8_t to_byte(std::int64_t value, std::int64_t most) {
  value = std::min(value, most);
  return static_cast<std::uint8_t>(most == 65535 ? value >> 8 : (value * 255 + most / 2) / most);
}

// Colours from one sample or three, opacity from an even one behind them.
void put_pixel(const std::uint8_t* samples, int count, std::uint8_t* to) {
  for (int c = 0; c < 3; ++c) to[c] = samples[count >= 3 ? c : 0];
  if (count % 2 == 0) to[3] = samples[count - 1];
}

// A fast path for bytes, the usual samples.
void copy_bytes(const std::uint8_t* from, int samples, Image& image) {
  if (samples == image.channels) {
    std::memcpy(image.pixels.data(), from, image.pixels.size());
    return;
  }
  std::uint8_t* to = image.pixels.data();
  for (std::size_t i = image.pixels.size() / static_cast<std::size_t>(image.channels); i > 0; --i) {
    put_pixel(from, samples, to);
    from += samples;
    to += image.channels;
  }
}

}  // namespace

PnmHeader read_pnm_header(std::span<const std::byte> bytes) { return header_of(ByteReader(bytes, "PNM", true)); }

Image decode_pnm(std::span<const std::byte> bytes, const DecodeLimits& limits) {
  const ByteReader r(bytes, "PNM", true);
  const PnmHeader h = header_of(r);
  check_size(h.width, h.height, limits);
  const bool text = h.kind <= 3, bitmap = h.kind == 1 || h.kind == 4;
  // Before memory is taken: a text file has at least one byte a sample.
  const auto pixels = r.part(text ? 2 : h.data, h.bytes);
  Scanner scan(r, h.data - 1);
  Image image = Image::blank(static_cast<int>(h.width), static_cast<int>(h.height), h.samples % 2 == 0 ? 4 : 3);
  if (!text && !bitmap && h.most == 255) {
    copy_bytes(reinterpret_cast<const std::uint8_t*>(pixels.data()), h.samples, image);
    return image;
  }
  const std::uint64_t stride = h.bytes / static_cast<std::uint64_t>(h.height);
  for (int y = 0; y < image.height; ++y) {
    const std::uint64_t line = h.data + stride * static_cast<std::uint64_t>(y);
    std::uint8_t* to = image.row(y);
    std::uint64_t i = 0;
    for (int x = 0; x < image.width; ++x, to += image.channels) {
      std::uint8_t samples[4] = {};
      for (int c = 0; c < h.samples; ++c, ++i) {
        if (bitmap) {
          const bool black = text ? scan.bit() : (r.u8(line + i / 8) >> (7 - i % 8) & 1U) != 0;
          samples[c] = black ? 0 : 255;
        } else {
          samples[c] = to_byte(text ? scan.number() : h.most > 255 ? r.u16(line + i * 2) : r.u8(line + i), h.most);
        }
      }
      put_pixel(samples, h.samples, to);
    }
  }
  return image;
}

ImageInfo probe_pnm(std::span<const std::byte> bytes) {
  const PnmHeader h = read_pnm_header(bytes);
  ImageInfo info;
  info.stored_width = static_cast<int>(h.width);
  info.stored_height = static_cast<int>(h.height);
  info.alpha = h.samples % 2 == 0;
  return info;
}

}  // namespace sdx::media
