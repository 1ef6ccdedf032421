#pragma once
// Pictures: from files and memory, as the input of a model, marked and written back.
//
//   const sdx::media::Image picture = sdx::media::read_image("photo.jpg");
//   const sdx::ValueSpec& input = session.inputs().front();
//   const sdx::NamedValues outputs = session.run({{input.name, sdx::media::to_tensor(picture, {.normalize = "imagenet"},
//   &input)}});
//
// Pictures are plain values that own their pixels. Functions keep no references to their arguments; any number of threads may
// call them at once, with different pictures or with one that nobody changes. All throw sdx::Error.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sdx/export.hpp>
#include <sdx/preprocessing.hpp>
#include <sdx/session.hpp>
#include <sdx/tensor.hpp>

namespace sdx::media {

// 8 bits a channel, uint8[height, width, channels]: rows from top to bottom without padding; 3 channels are red, green, blue, the
// fourth is opacity (255 = opaque), a single one is grey.
struct SDX_API Image {
  int width = 0;  // pixels
  int height = 0;
  int channels = 3;
  std::vector<std::uint8_t> pixels;  // width * height * channels

  // Zeroed. Throws Error(invalid_argument) unless width and height are 1 to 65535 and channels is 1, 3 or 4.
  static Image blank(int width, int height, int channels = 3);
  // The first byte of a row; valid as long as `pixels` keeps its size.
  const std::uint8_t* row(int y) const { return pixels.data() + static_cast<std::size_t>(y) * stride(); }
  std::uint8_t* row(int y) { return pixels.data() + static_cast<std::size_t>(y) * stride(); }
  std::size_t stride() const { return static_cast<std::size_t>(width) * static_cast<std::size_t>(channels); }  // bytes
};

struct DecodeLimits {
  std::int64_t pixels = 128'000'000;  // checked against the header, before memory is taken
  bool upright = true;                // false: a JPEG's orientation is ignored
};

// JPEG, PNG, WebP, BMP, PNM, TIFF or JPEG 2000, whatever the file is called. Three channels, or four where the file has opacity.
// Grey, palette, 16-bit, CMYK, interlaced and progressive files are converted; colour profiles and gamma are not applied. A JPEG
// is turned upright as its EXIF orientation says. Throws Error(invalid_argument) for other formats, damaged or truncated files
// and animations, Error(out_of_memory) beyond `limits`; read_image() also Error(io).
SDX_API Image decode_image(std::span<const std::byte> bytes, const DecodeLimits& limits = {});
SDX_API Image read_image(const std::filesystem::path& path, const DecodeLimits& limits = {});

// The bytes of a file. Throw Error(invalid_argument) for an Image whose `pixels` do not fit the other fields, as whatever takes
// one does, and for a quality out of range.
SDX_API std::string encode_png(const Image& image);
SDX_API std::string encode_jpeg(const Image& image, int quality = 90);  // quality 1 to 100; opacity is dropped
// PNG or JPEG by the name's ending; the file appears whole or not at all. Throws Error(invalid_argument) for other endings,
// and what encoding throws, Error(io).
SDX_API void write_image(const std::filesystem::path& path, const Image& image);

// Pixel centres are at half-integers (as in Pillow, OpenCV and ONNX's half_pixel). `antialias` widens the filter when
// shrinking, as Pillow does; without it four (bicubic: sixteen) neighbours count, as in OpenCV. Nearest and area ignore
// it. Throws Error(invalid_argument) for sizes outside 1 to 65535.
SDX_API Image resize(const Image& image, int width, int height, Preprocessing::Filter filter = Preprocessing::Filter::bilinear,
                     bool antialias = true);

// Where a picture lies in a model's input: input = picture * scale + offset, in pixels.
struct Placement {
  double scale_x = 1, scale_y = 1;
  double offset_x = 0, offset_y = 0;
};

// The tensor, owning, of shape [1,C,H,W], [1,H,W,C], [C,H,W], [H,W,C] or [H,W] by the layout; C is 1 or 3, opacity is dropped. It
// is for `input`, which says what `p` leaves open; null: float32[1,C,H,W]. Element types: float32, float16, bfloat16, float64 and
// all integers of 8 bits and more (rounded to nearest, clamped). `placement` is filled unless it is null. Throws
// Error(invalid_argument) for sizes, numbers and element types that make no sense.
SDX_API Tensor to_tensor(const Image& image, const Preprocessing& p = {}, const ValueSpec* input = nullptr,
                         Placement* placement = nullptr);

struct Ink {
  std::uint8_t red = 0, green = 0, blue = 0;
};

// Marks, in pixels from the upper left corner. They end at the picture's edges and accept any coordinates.
SDX_API void fill_rectangle(Image& image, int x, int y, int width, int height, Ink ink);
SDX_API void draw_rectangle(Image& image, int x, int y, int width, int height, Ink ink, int thickness = 2);  // grows inwards
SDX_API void draw_disc(Image& image, int x, int y, int radius, Ink ink);
// Digits, '.', '%', '-' and ' ' in a 3 x 5 grid of squares of `size` pixels, 4 squares apart; other letters leave a gap.
SDX_API void draw_number(Image& image, int x, int y, std::string_view text, Ink ink, int size = 2);

}  // namespace sdx::media
