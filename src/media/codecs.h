#pragma once
// One decoder per format; decode.cc chooses, and finishes what they hand over.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "media/image.h"

namespace sdx::media {

// A request to a decoder. Only decode_jpeg() heeds `at_least` and `region`.
struct Request {
  DecodeLimits limits;
  int at_least = 0;
  std::optional<Rectangle> region;  // of the upright picture
  bool metadata = false;            // beyond the orientation
};

// The result of a decoder: the picture as the file has it.
struct Stored {
  Image image;
  bool inks = false;          // the four channels are cyan, magenta, yellow, black; 255 is full ink
  bool grey = false;          // the file is grey: the colours are alike
  int width = 0, height = 0;  // of the whole picture
  int orientation = 1;        // 1 to 8
  int shrink = 1;             // side of an image's pixel in the file's pixels
  Rectangle part;             // what the image shows, in the file's pixels; no width: all of it
  Metadata metadata;
  std::vector<std::string> warnings;
};

Stored decode_jpeg(std::span<const std::byte> bytes, const Request& request);
Stored decode_png(std::span<const std::byte> bytes, const Request& request);
Stored decode_webp(std::span<const std::byte> bytes, const Request& request);
Image decode_bmp(std::span<const std::byte> bytes, const DecodeLimits& limits, double* dpi = nullptr);
Stored decode_gif(std::span<const std::byte> bytes, const Request& request);
Image decode_tga(std::span<const std::byte> bytes, const DecodeLimits& limits);
Image decode_pnm(std::span<const std::byte> bytes, const DecodeLimits& limits);
Image decode_jpeg2000(std::span<const std::byte> bytes, const DecodeLimits& limits);

// Without `format`, and with the stored size alone.
ImageInfo probe_jpeg(std::span<const std::byte> bytes);
ImageInfo probe_png(std::span<const std::byte> bytes);
ImageInfo probe_webp(std::span<const std::byte> bytes);
ImageInfo probe_bmp(std::span<const std::byte> bytes);
ImageInfo probe_gif(std::span<const std::byte> bytes);
ImageInfo probe_tga(std::span<const std::byte> bytes);
ImageInfo probe_pnm(std::span<const std::byte> bytes);
ImageInfo probe_jpeg2000(std::span<const std::byte> bytes);

// TGA has no signature: whether the bytes make sense as one.
bool looks_like_tga(std::span<const std::byte> bytes) noexcept;

// A PNM's header, and where the next picture of a stream of them begins.
struct PnmHeader {
  int kind = 0;  // 1 to 7: the digit behind the P
  std::int64_t width = 0, height = 0, most = 1;
  int samples = 1;          // a pixel
  std::uint64_t data = 0;   // where pixels begin
  std::uint64_t bytes = 0;  // of pixels, in binary kinds
};
PnmHeader read_pnm_header(std::span<const std::byte> bytes);

// The metadata are written as they are.
struct Writing {
  int quality = 90;
  double dpi = 0;
  Ink background;
  const Metadata& metadata;
};
std::string write_jpeg(const Image& image, const Writing& writing);
std::string write_png(const Image& image, const Writing& writing);
std::string write_webp(const Image& image, const Writing& writing);
std::string write_bmp(const Image& image, const Writing& writing);

// Throws Error(out_of_memory) when the header's size is beyond the limits, Error(invalid_argument) when it is zero.
void check_size(std::int64_t width, std::int64_t height, const DecodeLimits& limits);

// Convert rectangles between the stored and the upright picture, whose sizes are given; orientation 1 to 8.
Rectangle to_stored(Rectangle upright, int upright_width, int upright_height, int orientation);
Rectangle to_upright(Rectangle stored, int stored_width, int stored_height, int orientation);
// The region that is asked for, in stored pixels, clipped. Throws Error(invalid_argument) where nothing of it is inside.
Rectangle stored_region(const Rectangle& region, int stored_width, int stored_height, int orientation);
Image cut(const Image& image, const Rectangle& part);

// Converts four inks to three channels, in place and without colour management.
void inks_to_rgb(Image& image);

}  // namespace sdx::media
