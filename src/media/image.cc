#include "media/image.h"

#include <webp/decode.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "media/codecs.h"

namespace sdx::media {

Image Image::blank(int width, int height, int channels) {
  if (width < 1 || height < 1 || width > 65535 || height > 65535 || (channels != 1 && channels != 3 && channels != 4)) {
    fail(ErrorCode::invalid_argument, "an image of {}x{} with {} channels; sides go from 1 to 65535, channels are 1, 3 or 4",
         width, height, channels);
  }
  Image image{width, height, channels, {}};
  image.pixels.resize(image.stride() * static_cast<std::size_t>(height));
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
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), std::min<std::size_t>(bytes.size(), 16));
  if (text.starts_with("\xFF\xD8\xFF")) return "jpeg";
  if (text.starts_with("\x89PNG\r\n\x1A\n")) return "png";
  if (text.starts_with("RIFF") && text.size() >= 12 && text.substr(8, 4) == "WEBP") return "webp";
  if (text.starts_with("BM") && text.size() >= 14) return "bmp";
  if (text.size() > 2 && text[0] == 'P' && text[1] >= '1' && text[1] <= '6' && (text[2] == '#' || text[2] <= ' ')) return "pnm";
  if (text.starts_with(std::string_view("II*\0", 4)) || text.starts_with(std::string_view("MM\0*", 4))) return "tiff";
  if (text.starts_with(std::string_view("\0\0\0\x0CjP  \r\n\x87\n", 12)) || text.starts_with("\xFF\x4F\xFF\x51"))
    return "jpeg2000";
  return "";
}

Image decode_image(std::span<const std::byte> bytes, const DecodeLimits& limits) {
  const std::string_view format = image_format(bytes);
  if (format == "jpeg") return decode_jpeg(bytes, limits);
  if (format == "png") return decode_png(bytes, limits);
  if (format == "webp") return decode_webp(bytes, limits);
  if (format == "bmp") return decode_bmp(bytes, limits);
  if (format == "pnm") return decode_pnm(bytes, limits);
  if (format == "tiff") return decode_tiff(bytes, limits);
  if (format == "jpeg2000") return decode_jpeg2000(bytes, limits);
  fail(ErrorCode::invalid_argument, "the data are no JPEG, PNG, WebP, BMP, PNM, TIFF or JPEG 2000 image");
}

Image read_image(const std::filesystem::path& path, const DecodeLimits& limits) {
  const auto file = MappedFile::open(path);
  try {
    return decode_image(file->bytes(), limits);
  } catch (Error& e) {
    e.add_context("in file '" + path.string() + "'");
    throw;
  }
}

Image decode_webp(std::span<const std::byte> bytes, const DecodeLimits& limits) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(data, bytes.size(), &features) != VP8_STATUS_OK) {
    fail(ErrorCode::invalid_argument, "the WebP image is damaged or truncated");
  }
  if (features.has_animation != 0) fail(ErrorCode::invalid_argument, "the WebP file is an animation; expected a single image");
  check_size(features.width, features.height, limits);
  Image image = Image::blank(features.width, features.height, features.has_alpha != 0 ? 4 : 3);
  const auto decode = image.channels == 4 ? WebPDecodeRGBAInto : WebPDecodeRGBInto;
  if (decode(data, bytes.size(), image.pixels.data(), image.pixels.size(), static_cast<int>(image.stride())) == nullptr) {
    fail(ErrorCode::invalid_argument, "the WebP image is damaged or truncated");
  }
  return image;
}

void write_image(const std::filesystem::path& path, const Image& image) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (ending == ".png") return write_file_atomically(path, encode_png(image));
  if (ending == ".jpg" || ending == ".jpeg") return write_file_atomically(path, encode_jpeg(image));
  fail(ErrorCode::invalid_argument, "cannot write an image as '{}': its name must end in .png, .jpg or .jpeg", path.string());
}

Image apply_orientation(Image image, int orientation) {
  if (orientation < 2 || orientation > 8) return image;
  const bool swap = orientation >= 5;
  Image out = Image::blank(swap ? image.height : image.width, swap ? image.width : image.height, image.channels);
  const auto channels = static_cast<std::size_t>(image.channels);
  for (int y = 0; y < image.height; ++y) {
    const std::uint8_t* from = image.row(y);
    for (int x = 0; x < image.width; ++x, from += channels) {
      int u = swap ? y : x;
      int v = swap ? x : y;
      // EXIF 2.32, tag 0x0112: which side of the upright picture the stored rows and columns begin at.
      if (orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7) u = out.width - 1 - u;
      if (orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8) v = out.height - 1 - v;
      std::memcpy(out.row(v) + static_cast<std::size_t>(u) * channels, from, channels);
    }
  }
  return out;
}

}  // namespace sdx::media
