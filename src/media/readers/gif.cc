// GIF: the first picture of a file. Source: GIF89a specification (CompuServe, 1990).

#include <array>
#include <vector>

#include "base/error.h"
#include "media/byte_reader.h"
#include "media/codecs.h"

namespace sdx::media {
namespace {

constexpr int kMostBits = 12;  // of a code
constexpr unsigned kMostCodes = 1U << kMostBits;

struct Colours {
  std::uint64_t at = 0;
  unsigned count = 0;  // 0: there is no table
};

// The data before the pixels of the first picture.
struct Header {
  std::int64_t width = 0, height = 0;  // of the canvas
  std::int64_t left = 0, top = 0, frame_width = 0, frame_height = 0;
  Colours colours;
  int transparent = -1;  // index
  bool interlaced = false;
  std::uint64_t data = 0;  // the size of codes, and behind it blocks
  std::string xmp, icc;

  bool covers() const { return left == 0 && top == 0 && frame_width == width && frame_height == height; }
  bool alpha() const { return transparent >= 0 || !covers(); }
};

// The position after a chain of blocks, which begins with the length of the first.
std::uint64_t skip_blocks(const ByteReader& r, std::uint64_t at) {
  while (const std::uint32_t size = r.u8(at)) at += 1 + size;
  return at + 1;
}

std::string joined_blocks(const ByteReader& r, std::uint64_t at) {
  std::string out;
  while (const std::uint32_t size = r.u8(at)) {
    const auto part = r.part(at + 1, size);
    out.append(reinterpret_cast<const char*>(part.data()), part.size());
    at += 1 + size;
  }
  return out;
}

// XMP is no chain of blocks but text, behind which 258 bytes lead any reader of blocks to the end. Source: XMP part 3, 1.1.2.
std::string xmp_between(const ByteReader& r, std::uint64_t from, std::uint64_t to) {
  constexpr std::uint64_t kTrailer = 258;
  if (to - from <= kTrailer) return "";
  const auto part = r.part(from, to - from - kTrailer);
  return {reinterpret_cast<const char*>(part.data()), part.size()};
}

// `at`: the position of the label. Returns the position of the next block.
std::uint64_t read_extension(const ByteReader& r, std::uint64_t at, Header& h) {
  constexpr std::uint32_t kControl = 0xF9, kApplication = 0xFF;
  const std::uint32_t label = r.u8(at);
  const std::uint64_t end = skip_blocks(r, at + 1);
  const std::uint32_t size = r.u8(at + 1);
  if (label == kControl && size >= 4) h.transparent = (r.u8(at + 2) & 1U) != 0 ? static_cast<int>(r.u8(at + 5)) : -1;
  if (label == kApplication && size == 11) {
    const auto part = r.part(at + 2, 11);
    const std::string_view name(reinterpret_cast<const char*>(part.data()), part.size());
    if (name == "XMP DataXMP") h.xmp = xmp_between(r, at + 13, end);
    if (name == "ICCRGBG1012") h.icc = joined_blocks(r, at + 13);
  }
  return end;
}

Colours colours_at(std::uint32_t flags, std::uint64_t at) {
  return (flags & 0x80U) != 0 ? Colours{at, 2U << (flags & 7U)} : Colours{};
}

// `at`: the position after the separator.
void read_frame(const ByteReader& r, std::uint64_t at, Header& h) {
  h.left = r.u16(at);
  h.top = r.u16(at + 2);
  h.frame_width = r.u16(at + 4);
  h.frame_height = r.u16(at + 6);
  const std::uint32_t flags = r.u8(at + 8);
  h.interlaced = (flags & 0x40U) != 0;
  h.data = at + 9;
  if (const Colours own = colours_at(flags, h.data); own.count > 0) {
    h.colours = own;
    h.data += own.count * std::uint64_t{3};
  }
  if (h.colours.count == 0) r.damaged("it has no table of colours");
  r.part(h.colours.at, h.colours.count * std::uint64_t{3});
  // Some writers leave the canvas at nothing, or smaller than its first picture.
  h.width = std::max(h.width, h.left + h.frame_width);
  h.height = std::max(h.height, h.top + h.frame_height);
}

Header read_header(const ByteReader& r) {
  Header h;
  h.width = r.u16(6);
  h.height = r.u16(8);
  const std::uint32_t flags = r.u8(10);
  h.colours = colours_at(flags, 13);
  for (std::uint64_t at = 13 + h.colours.count * std::uint64_t{3};;) {
    const std::uint32_t kind = r.u8(at);
    if (kind == 0x3B) r.damaged("it holds no picture");
    if (kind == 0x2C) {
      read_frame(r, at + 1, h);
      return h;
    }
    if (kind != 0x21) r.damaged("a block of unknown kind");
    at = read_extension(r, at + 1, h);
  }
}

// Whether another picture follows the first; false if the file ends before.
bool is_animation(const ByteReader& r, const Header& first) {
  try {
    Header ignored;
    for (std::uint64_t at = skip_blocks(r, first.data + 1);;) {
      const std::uint32_t kind = r.u8(at);
      if (kind != 0x21) return kind == 0x2C;
      at = read_extension(r, at + 1, ignored);
    }
  } catch (const Error&) {
    return false;
  }
}

// Codes of growing width out of a chain of blocks.
class Codes {
 public:
  Codes(const ByteReader& r, std::uint64_t at) : r_(r), at_(at) {}

  unsigned next(int width) {
    while (have_ < width) {
      if (left_ == 0) {
        left_ = r_.u8(at_++);
        if (left_ == 0) r_.damaged("its pixels end too early");
      }
      bits_ |= r_.u8(at_++) << have_;
      have_ += 8;
      --left_;
    }
    const unsigned code = bits_ & ((1U << width) - 1);
    bits_ >>= width;
    have_ -= width;
    return code;
  }

 private:
  const ByteReader& r_;
  std::uint64_t at_;
  std::uint32_t left_ = 0, bits_ = 0;
  int have_ = 0;
};

// Indices of colours, row by row.
class Pixels {
 public:
  Pixels(const ByteReader& r, std::uint64_t at) : r_(r), bits_(static_cast<int>(r.u8(at))), codes_(r, at + 1) {
    if (bits_ < 1 || bits_ > 8) r.damaged("the size of its codes makes no sense");
    clear();
  }

  void read(std::uint8_t* out, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      if (depth_ == 0) expand();
      out[i] = stack_[--depth_];
    }
  }

 private:
  unsigned clear_code() const { return 1U << bits_; }
  void clear() {
    width_ = bits_ + 1;
    next_ = clear_code() + 2;
    last_ = kNone;
  }

  // The next code's indices, the last of them first.
  void expand() {
    unsigned code = codes_.next(width_);
    while (code == clear_code()) {
      clear();
      code = codes_.next(width_);
    }
    if (code == clear_code() + 1) r_.damaged("its pixels end too early");
    const unsigned limit = last_ == kNone ? clear_code() : next_;
    if (code > limit || (last_ == kNone && code >= limit) || code >= kMostCodes) r_.damaged("a code that is not there yet");
    unsigned walk = code;
    if (code == next_ && last_ != kNone) {  // what was last, and its own first index
      stack_[depth_++] = first_of(last_);
      walk = last_;
    }
    while (walk >= clear_code()) {
      stack_[depth_++] = suffix_[walk];
      walk = prefix_[walk];
    }
    stack_[depth_++] = static_cast<std::uint8_t>(walk);
    if (last_ != kNone && next_ < kMostCodes) {
      prefix_[next_] = static_cast<std::uint16_t>(last_);
      suffix_[next_] = static_cast<std::uint8_t>(walk);
      if (++next_ == 1U << width_ && width_ < kMostBits) ++width_;
    }
    last_ = code;
  }

  std::uint8_t first_of(unsigned code) const {
    while (code >= clear_code()) code = prefix_[code];
    return static_cast<std::uint8_t>(code);
  }

  static constexpr unsigned kNone = ~0U;
  const ByteReader& r_;
  int bits_, width_ = 0;
  unsigned next_ = 0, last_ = kNone;
  Codes codes_;
  std::array<std::uint16_t, kMostCodes> prefix_{};
  std::array<std::uint8_t, kMostCodes> suffix_{};
  std::array<std::uint8_t, kMostCodes + 1> stack_{};
  std::size_t depth_ = 0;
};

// Rows in the order of the file, as lines of the picture.
std::vector<int> line_order(int height, bool interlaced) {
  std::vector<int> out;
  const auto add = [&](int first, int step) {
    for (int y = first; y < height; y += step) out.push_back(y);
  };
  if (!interlaced) {
    add(0, 1);
    return out;
  }
  for (const auto& [first, step] : {std::pair{0, 8}, {4, 8}, {2, 4}, {1, 2}}) add(first, step);
  return out;
}

void draw(const ByteReader& r, const Header& h, Image& image) {
  std::array<std::array<std::uint8_t, 4>, 256> colours{};
  for (auto& colour : colours) colour[3] = 255;
  for (unsigned i = 0; i < h.colours.count; ++i) {
    for (unsigned c = 0; c < 3; ++c) colours[i][c] = static_cast<std::uint8_t>(r.u8(h.colours.at + i * 3 + c));
  }
  if (h.transparent >= 0) colours[static_cast<std::size_t>(h.transparent)] = {};
  const auto channels = static_cast<std::size_t>(image.channels);
  std::vector<std::uint8_t> line(static_cast<std::size_t>(h.frame_width));
  Pixels pixels(r, h.data);
  for (const int y : line_order(static_cast<int>(h.frame_height), h.interlaced)) {
    pixels.read(line.data(), line.size());
    std::uint8_t* out = image.row(static_cast<int>(h.top) + y) + static_cast<std::size_t>(h.left) * channels;
    for (const std::uint8_t index : line) {
      for (std::size_t c = 0; c < channels; ++c) *out++ = colours[index][c];
    }
  }
}

}  // namespace

Stored decode_gif(std::span<const std::byte> bytes, const Request& request) {
  const ByteReader r(bytes, "GIF");
  Header h = read_header(r);
  check_size(h.width, h.height, request.limits);
  Stored out;
  out.width = static_cast<int>(h.width);
  out.height = static_cast<int>(h.height);
  out.image = Image::blank(out.width, out.height, h.alpha() ? 4 : 3);
  draw(r, h, out.image);
  if (request.metadata) {
    out.metadata.xmp = std::move(h.xmp);
    out.metadata.icc = std::move(h.icc);
  }
  return out;
}

ImageInfo probe_gif(std::span<const std::byte> bytes) {
  const ByteReader r(bytes, "GIF");
  const Header h = read_header(r);
  ImageInfo info;
  info.stored_width = static_cast<int>(h.width);
  info.stored_height = static_cast<int>(h.height);
  info.alpha = h.alpha();
  info.icc = !h.icc.empty();
  info.animation = is_animation(r, h);
  return info;
}

}  // namespace sdx::media
