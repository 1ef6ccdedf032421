#pragma once
// 8-bit images: reading JPEG, PNG, WebP, BMP, PNM, TIFF and JPEG 2000, writing PNG and JPEG.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sdx::media {

// Rows from top to bottom without padding; 3 channels are red, green, blue, the fourth is opacity (255 = opaque).
struct Image {
  int width = 0;
  int height = 0;
  int channels = 3;
  std::vector<std::uint8_t> pixels;

  // Zeroed. Throws Error(invalid_argument) unless width and height are 1 to 65535 and channels is 1, 3 or 4.
  static Image blank(int width, int height, int channels = 3);
  const std::uint8_t* row(int y) const { return pixels.data() + static_cast<std::size_t>(y) * stride(); }
  std::uint8_t* row(int y) { return pixels.data() + static_cast<std::size_t>(y) * stride(); }
  std::size_t stride() const { return static_cast<std::size_t>(width) * static_cast<std::size_t>(channels); }
};

struct DecodeLimits {
  std::int64_t pixels = 128'000'000;  // checked against the header, before memory is taken
  bool upright = true;                // false: a JPEG's orientation is ignored
};

// "jpeg", "png", "webp", "bmp", "pnm", "tiff", "jpeg2000" from the first bytes; "" for anything else.
std::string_view image_format(std::span<const std::byte> bytes) noexcept;

// Three channels, or four where the file has opacity. Grey, palette, 16-bit, CMYK, interlaced and progressive files are
// converted; colour profiles and gamma are not applied. A JPEG is turned upright as its EXIF orientation says. Throws
// Error(invalid_argument) for other formats, damaged or truncated files and animations, Error(out_of_memory) beyond `limits`.
Image decode_image(std::span<const std::byte> bytes, const DecodeLimits& limits = {});
Image read_image(const std::filesystem::path& path, const DecodeLimits& limits = {});

std::string encode_png(const Image& image);
std::string encode_jpeg(const Image& image, int quality = 90);  // quality 1 to 100; opacity is dropped
// PNG or JPEG by the name's ending.
void write_image(const std::filesystem::path& path, const Image& image);

// `orientation` as EXIF numbers it, 1 (upright) to 8; others return the image as it is.
Image apply_orientation(Image image, int orientation);

}  // namespace sdx::media
