// Baseline TIFF: the first picture of a file; strips; grey, RGB or palette of 8 or 16 bits, black and white of 1; stored plainly,
// as PackBits, LZW or Deflate, with or without horizontal differences. Source: TIFF 6.0 (Adobe, 1992); Deflate: Adobe's TIFF
// Technical Note 3 of 2002.

#include <zlib.h>

#include <array>
#include <utility>

#include "media/byte_reader.h"
#include "media/codecs.h"

namespace sdx::media {
namespace {

using Bytes = std::vector<std::uint8_t>;

struct Directory {
  std::int64_t width = 0, height = 0;
  std::uint32_t bits = 1, compression = 1, photometric = 0, samples = 1, planar = 1, predictor = 1, extra = 0;
  std::uint64_t rows_per_strip = 0xFFFFFFFF;
  std::pair<std::uint64_t, std::uint64_t> offsets{}, counts{}, colors{};  // positions of the entries; number of values
  std::uint32_t offsets_type = 4, counts_type = 4;
};

constexpr std::uint32_t kShort = 3;

std::uint64_t value_at(const ByteReader& r, std::uint64_t at, std::uint32_t type, std::uint64_t index) {
  return type == kShort ? r.u16(at + 2 * index) : r.u32(at + 4 * index);
}

Directory read_directory(const ByteReader& r) {
  Directory d;
  const std::uint64_t start = r.u32(4);
  const std::uint32_t entries = r.u16(start);
  for (std::uint32_t i = 0; i < entries; ++i) {
    const std::uint64_t entry = start + 2 + 12 * std::uint64_t{i};
    const std::uint32_t tag = r.u16(entry), type = r.u16(entry + 2), count = r.u32(entry + 4);
    const std::uint64_t bytes = std::uint64_t{count} * (type == kShort ? 2 : 4);
    const std::uint64_t at = bytes <= 4 ? entry + 8 : r.u32(entry + 8);
    if (type != kShort && type != 4) continue;  // text, fractions: nothing that decoding needs
    if (count == 0) continue;
    const auto first = static_cast<std::uint32_t>(value_at(r, at, type, 0));
    switch (tag) {
      case 256: d.width = first; break;
      case 257: d.height = first; break;
      case 258:
        d.bits = first;
        for (std::uint32_t k = 1; k < std::min(count, 5U); ++k) {
          if (value_at(r, at, type, k) != first) r.damaged("its samples have different sizes");
        }
        break;
      case 259: d.compression = first; break;
      case 262: d.photometric = first; break;
      case 273: d.offsets = {at, count}, d.offsets_type = type; break;
      case 277: d.samples = first; break;
      case 278: d.rows_per_strip = first; break;
      case 279: d.counts = {at, count}, d.counts_type = type; break;
      case 284: d.planar = first; break;
      case 317: d.predictor = first; break;
      case 320: d.colors = {at, count}; break;
      case 322: r.damaged("it is stored in tiles");
      case 338: d.extra = first; break;
      default: break;
    }
  }
  return d;
}

void check(const ByteReader& r, const Directory& d) {
  const std::uint32_t colors = d.photometric == 2 ? 3 : 1;
  if (d.photometric > 3) r.damaged("it is neither grey nor RGB nor a palette");
  if (d.samples < colors || d.samples > 8) r.damaged("its number of samples a pixel does not fit its colours");
  if (d.bits != 8 && d.bits != 16 && !(d.bits == 1 && d.samples == 1 && d.photometric < 2))
    r.damaged("its samples have an odd size");
  if (d.planar != 1 && d.samples > 1) r.damaged("its colours are stored apart");
  if (d.predictor != 1 && (d.predictor != 2 || d.bits == 1)) r.damaged("it uses an unknown predictor");
  if (d.photometric == 3 && (d.bits != 8 || d.colors.second < 768)) r.damaged("its palette is incomplete");
  if (d.offsets.second == 0 || d.rows_per_strip == 0) r.damaged("it has no strips");
}

Bytes unpack_bits(std::span<const std::byte> in, std::size_t size) {
  Bytes out;
  for (std::size_t at = 0; at < in.size() && out.size() < size;) {
    const auto n = static_cast<std::int8_t>(in[at++]);
    if (n == -128 || at >= in.size()) continue;
    const std::size_t count = n >= 0 ? static_cast<std::size_t>(n) + 1 : static_cast<std::size_t>(1 - n);
    for (std::size_t k = 0; k < count && at < in.size(); ++k) {
      out.push_back(static_cast<std::uint8_t>(in[at]));
      if (n >= 0) ++at;
    }
    if (n < 0) ++at;
  }
  return out;
}

// Codes of 9 to 12 bits, high bits first; 256 clears the table, 257 ends.
Bytes unpack_lzw(const ByteReader& r, std::span<const std::byte> in, std::size_t size) {
  constexpr unsigned kClear = 256, kEnd = 257, kMost = 4096;
  std::array<std::uint16_t, kMost> prefix{};
  std::array<std::uint8_t, kMost> last{};
  std::array<std::uint8_t, kMost> text{};
  Bytes out;
  unsigned next = 258, width = 9, previous = kMost;
  std::uint64_t bit = 0;
  while (out.size() < size && bit + width <= in.size() * 8) {
    unsigned code = 0;
    for (unsigned k = 0; k < width; ++k, ++bit) {
      code = code << 1 | (static_cast<unsigned>(in[bit / 8]) >> (7 - bit % 8) & 1U);
    }
    if (code == kEnd) break;
    if (code == kClear) {
      next = 258, width = 9, previous = kMost;
      continue;
    }
    if (code > next || (code == next && previous == kMost) || (previous == kMost && code > 255))
      r.damaged("a code of its LZW data");
    // The text of a code, from its end; a code not yet in the table is the previous text and its first letter.
    std::size_t length = 0;
    unsigned walk = code == next ? previous : code;
    for (; walk > 255; walk = prefix[walk]) text[length++] = last[walk];
    text[length++] = static_cast<std::uint8_t>(walk);
    const auto first = static_cast<std::uint8_t>(walk);
    while (length > 0) out.push_back(text[--length]);
    if (code == next) out.push_back(first);
    if (previous != kMost && next < kMost) {
      prefix[next] = static_cast<std::uint16_t>(previous);
      last[next++] = first;
    }
    if (next + 1 >= 1U << width && width < 12) ++width;
    previous = code;
  }
  return out;
}

Bytes unpack_deflate(const ByteReader& r, std::span<const std::byte> in, std::size_t size) {
  Bytes out(size);
  auto length = static_cast<uLongf>(size);
  const int status = uncompress(out.data(), &length, reinterpret_cast<const Bytef*>(in.data()), static_cast<uLong>(in.size()));
  if (status != Z_OK) r.damaged("its Deflate data");
  return out;
}

Bytes read_strip(const ByteReader& r, const Directory& d, std::uint64_t index, std::size_t size) {
  if (index >= d.offsets.second) r.damaged("it has too few strips");
  const std::uint64_t at = value_at(r, d.offsets.first, d.offsets_type, index);
  const std::uint64_t count = index < d.counts.second ? value_at(r, d.counts.first, d.counts_type, index)
                                                      : r.size() - std::min<std::uint64_t>(at, r.size());
  const auto in = r.part(at, count);
  Bytes out;
  switch (d.compression) {
    case 1: {
      const auto* p = reinterpret_cast<const std::uint8_t*>(in.data());
      out.assign(p, p + in.size());
      break;
    }
    case 5: out = unpack_lzw(r, in, size); break;
    case 8:
    case 32946: out = unpack_deflate(r, in, size); break;
    case 32773: out = unpack_bits(in, size); break;
    default: r.damaged("its compression (only none, PackBits, LZW and Deflate are known)");
  }
  if (out.size() < size) r.damaged("a strip is too short");
  return out;
}

// Samples of 8 bits: the high byte of those of 16.
std::uint8_t sample(const Bytes& strip, const Directory& d, std::uint64_t index, bool big) {
  if (d.bits == 8) return strip[index];
  if (d.bits == 16) return strip[index * 2 + (big ? 0 : 1)];
  return (strip[index / 8] >> (7 - index % 8) & 1U) != 0 ? 255 : 0;
}

void undo_predictor(Bytes& strip, const Directory& d, std::uint64_t stride, std::uint64_t rows, bool big) {
  for (std::uint64_t y = 0; y < rows; ++y) {
    std::uint8_t* line = strip.data() + y * stride;
    if (d.bits == 8) {
      for (std::uint64_t i = d.samples; i < stride; ++i) line[i] = static_cast<std::uint8_t>(line[i] + line[i - d.samples]);
      continue;
    }
    for (std::uint64_t i = d.samples; i < stride / 2; ++i) {
      const std::size_t low = big ? 1 : 0;
      const auto word = [&](std::uint64_t k) { return line[2 * k + low] + line[2 * k + 1 - low] * 256; };
      const int sum = word(i) + word(i - d.samples);
      line[2 * i + low] = static_cast<std::uint8_t>(sum);
      line[2 * i + 1 - low] = static_cast<std::uint8_t>(sum >> 8);
    }
  }
}

}  // namespace

Image decode_tiff(std::span<const std::byte> bytes, const DecodeLimits& limits) {
  ByteReader r(bytes, "TIFF");
  const bool big = r.u8(0) == 'M';
  r.set_big_endian(big);
  const Directory d = read_directory(r);
  check_size(d.width, d.height, limits);
  check(r, d);
  const auto width = static_cast<std::uint64_t>(d.width);
  const std::uint64_t stride = (width * d.samples * d.bits + 7) / 8;
  const bool opacity = d.photometric == 2 && d.samples >= 4 && d.extra != 0;
  Image image = Image::blank(static_cast<int>(d.width), static_cast<int>(d.height), opacity ? 4 : 3);
  const auto height = static_cast<std::uint64_t>(d.height);
  const std::uint64_t per_strip = std::min(d.rows_per_strip, height);
  for (std::uint64_t y = 0; y < height; y += per_strip) {
    const std::uint64_t rows = std::min(per_strip, height - y);
    Bytes strip = read_strip(r, d, y / per_strip, static_cast<std::size_t>(rows * stride));
    if (d.predictor == 2) undo_predictor(strip, d, stride, rows, big);
    for (std::uint64_t k = 0; k < rows; ++k) {
      std::uint8_t* to = image.row(static_cast<int>(y + k));
      const std::uint64_t line = d.bits == 1 ? k * stride * 8 : k * width * d.samples;
      for (std::uint64_t x = 0; x < width; ++x, to += image.channels) {
        const std::uint64_t at = line + x * d.samples;
        for (int c = 0; c < image.channels; ++c) {
          if (d.photometric == 2) {
            to[c] = sample(strip, d, at + static_cast<std::uint64_t>(c), big);
          } else if (d.photometric == 3) {
            const std::uint64_t entry = static_cast<std::uint64_t>(c) * 256 + sample(strip, d, at, big);
            to[c] = static_cast<std::uint8_t>(r.u16(d.colors.first + 2 * entry) >> 8);
          } else {
            const std::uint8_t grey = sample(strip, d, at, big);
            to[c] = d.photometric == 0 ? static_cast<std::uint8_t>(255 - grey) : grey;
          }
        }
      }
    }
  }
  return image;
}

}  // namespace sdx::media
