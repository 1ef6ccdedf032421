#include "media/image.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/error.h"
#include "base/system/pages.h"
#include "media/byte_reader.h"
#include "media/codecs.h"

namespace sdx::media {
namespace {

using Text = std::string_view;

bool has(Text text, std::size_t at, Text what) { return text.size() >= at + what.size() && text.substr(at, what.size()) == what; }

// Brands of the ISO base media file format. Sources: ISO/IEC 23008-12 (HEIF), AV1 Image File Format 1.1; "crx ": Canon's CR3.
Text format_of_brand(Text brand) {
  constexpr std::array<Text, 7> kHeic{"heic", "heix", "heim", "heis", "hevc", "hevx", "hevm"};
  if (brand == "avif" || brand == "avis") return "avif";
  if (brand == "crx ") return "raw";
  return std::find(kHeic.begin(), kHeic.end(), brand) != kHeic.end() ? "heic" : "";
}

Text format_of_box(Text text) {
  if (!has(text, 4, "ftyp") || text.size() < 12) return "";
  const Text main = text.substr(8, 4);
  if (const Text format = format_of_brand(main); !format.empty()) return format;
  if (main != "mif1" && main != "msf1" && main != "miaf") return "";
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  const std::size_t size = std::min<std::size_t>({text.size(), std::size_t{p[2]} << 8 | p[3], 256});
  for (std::size_t at = 16; at + 4 <= size; at += 4) {
    if (const Text format = format_of_brand(text.substr(at, 4)); !format.empty()) return format;
  }
  return "heic";
}

// Most cameras' raw files are TIFF structures: DNG says so by a tag, Canon's CR2 behind the header; the others have a reduced
// picture in their first directory and the sensor's data in directories below it, or the sensor's data itself.
bool is_raw_tiff(std::span<const std::byte> bytes) noexcept {
  constexpr std::uint32_t kKind = 254, kPhotometric = 262, kMaker = 271, kBelow = 330, kDng = 50706;
  try {
    ByteReader r(bytes, "TIFF");
    r.set_big_endian(r.u8(0) == 'M');
    if (r.u8(8) == 'C' && r.u8(9) == 'R') return true;
    const std::uint64_t start = r.u32(4);
    bool reduced = false, maker = false, below = false;
    for (std::uint64_t i = 0; i < r.u16(start); ++i) {
      const std::uint64_t entry = start + 2 + 12 * i;
      const std::uint32_t tag = r.u16(entry);
      const std::uint32_t value = r.u16(entry + 2) == 3 ? r.u16(entry + 8) : r.u32(entry + 8);
      if (tag == kDng) return true;
      if (tag == kPhotometric && (value == 32803 || value == 34892)) return true;  // a colour filter array; linear raw
      reduced = reduced || (tag == kKind && (value & 1U) != 0);
      maker = maker || tag == kMaker;
      below = below || tag == kBelow;
    }
    return reduced && maker && below;
  } catch (const std::exception&) {
    return false;
  }
}

bool is_other_raw(Text text) {
  constexpr std::array<Text, 6> kHeads{"IIRO", "IIRS", "MMOR", "FUJIFILMCCD-RAW", "FOVb", Text("\0MRM", 4)};
  const bool head = std::any_of(kHeads.begin(), kHeads.end(), [&](Text h) { return text.starts_with(h); });
  return head || has(text, 6, "HEAPCCDR") || text.starts_with(Text("IIU\0", 4));  // Canon's CRW, Panasonic's RW2
}

// Large pictures are in large pages: 24 megapixels are zeroed in 13 instead of 73 ms, most of which the kernel spends on pages of
// 4 KiB.
void reserve(std::vector<std::uint8_t>& pixels, std::size_t size) {
  pixels.reserve(size);
  prefer_huge_pages(pixels.data(), size);
}

}  // namespace

Image Image::blank(int width, int height, int channels) {
  if (width < 1 || height < 1 || width > 65535 || height > 65535 || (channels != 1 && channels != 3 && channels != 4)) {
    fail(ErrorCode::invalid_argument, "an image of {}x{} with {} channels; sides must be 1 to 65535, and channels 1, 3 or 4",
         width, height, channels);
  }
  Image image{width, height, channels, {}};
  const std::size_t size = image.stride() * static_cast<std::size_t>(height);
  reserve(image.pixels, size);
  image.pixels.resize(size);
  return image;
}

void check_pixels(const Image& image) {
  const bool sides = image.width >= 1 && image.height >= 1 && image.width <= 65535 && image.height <= 65535;
  const bool channels = image.channels == 1 || image.channels == 3 || image.channels == 4;
  if (sides && channels && image.pixels.size() == image.stride() * static_cast<std::size_t>(image.height)) return;
  fail(ErrorCode::invalid_argument, "an image of {}x{} with {} channels and {} bytes of pixels", image.width, image.height,
       image.channels, image.pixels.size());
}

void check_size(std::int64_t width, std::int64_t height, const DecodeLimits& limits) {
  if (width < 1 || height < 1) fail(ErrorCode::invalid_argument, "the image has no pixels ({}x{})", width, height);
  if (width > 65535 || height > 65535 || width * height > limits.pixels) {
    fail(ErrorCode::out_of_memory, "the image has {}x{} pixels, the limit is {} in all and 65535 a side", width, height,
         limits.pixels);
  }
}

std::string_view image_format(std::span<const std::byte> bytes) noexcept {
  const Text text(reinterpret_cast<const char*>(bytes.data()), std::min<std::size_t>(bytes.size(), 256));
  if (text.starts_with("\xFF\xD8\xFF")) return "jpeg";
  if (text.starts_with("\x89PNG\r\n\x1A\n")) return "png";
  if (text.starts_with("RIFF") && has(text, 8, "WEBP")) return "webp";
  if (text.starts_with("BM") && text.size() >= 14) return "bmp";
  if (text.size() > 2 && text[0] == 'P' && text[1] >= '1' && text[1] <= '7' && (text[2] == '#' || text[2] <= ' ')) return "pnm";
  if (text.starts_with("GIF87a") || text.starts_with("GIF89a")) return "gif";
  if (text.starts_with(Text("II+\0\x08\0\0\0", 8)) || text.starts_with(Text("MM\0+\0\x08\0\0", 8))) return "tiff";  // BigTIFF
  if (text.starts_with(Text("II*\0", 4)) || text.starts_with(Text("MM\0*", 4))) return is_raw_tiff(bytes) ? "raw" : "tiff";
  if (text.starts_with(Text("\0\0\0\x0CjP  \r\n\x87\n", 12)) || text.starts_with("\xFF\x4F\xFF\x51")) return "jpeg2000";
  if (text.starts_with("\xFF\x0A") || text.starts_with(Text("\0\0\0\x0CJXL \r\n\x87\n", 12))) return "jpegxl";
  if (is_other_raw(text)) return "raw";
  const Text boxed = format_of_box(text);
  return boxed.empty() && looks_like_tga(bytes) ? "tga" : boxed;
}

}  // namespace sdx::media
