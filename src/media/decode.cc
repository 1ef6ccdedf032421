// The steps of decoding that all formats share: detecting the format, colours, the wanted part, orientation.

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "media/codecs.h"
#include "media/modules.h"

namespace sdx::media {
namespace {

[[noreturn]] void unknown(std::span<const std::byte> bytes) {
  if (bytes.empty()) fail(ErrorCode::invalid_argument, "the image is empty");
  fail(ErrorCode::invalid_argument,
       "the data are not a JPEG, PNG, WebP, GIF, BMP, PNM, TIFF, JPEG 2000, JPEG XL, HEIC, AVIF, TGA or raw image");
}

Stored plain(Image image) {
  Stored out;
  out.width = image.width;
  out.height = image.height;
  out.image = std::move(image);
  return out;
}

Stored decode(std::string_view format, std::span<const std::byte> bytes, const Request& request) {
  if (format == "jpeg") return decode_jpeg(bytes, request);
  if (format == "png") return decode_png(bytes, request);
  if (format == "webp") return decode_webp(bytes, request);
  if (format == "tiff") return decode_tiff(bytes, request);
  if (format == "heic" || format == "avif") return decode_heif(bytes, request);
  if (format == "jpegxl") return decode_jxl(bytes, request);
  if (format == "raw") return decode_raw(bytes, request);
  if (format == "gif") return decode_gif(bytes, request);
  if (format == "tga") return plain(decode_tga(bytes, request.limits));
  if (format == "pnm") return plain(decode_pnm(bytes, request.limits));
  if (format == "jpeg2000") return plain(decode_jpeg2000(bytes, request.limits));
  if (format != "bmp") unknown(bytes);
  double dpi = 0;
  Stored out = plain(decode_bmp(bytes, request.limits, &dpi));
  out.metadata.dpi = dpi;
  return out;
}

// The steps that a decoder has left. `turn`: the orientation to apply.
Image finished(Stored& stored, const std::optional<Rectangle>& region, int turn) {
  if (stored.part.width == 0) stored.part = {0, 0, stored.width, stored.height};
  const bool all = stored.part.width >= stored.width && stored.part.height >= stored.height;
  if (region && all && stored.shrink == 1) {
    const Rectangle part = stored_region(*region, stored.width, stored.height, turn);
    if (part.width != stored.width || part.height != stored.height) stored.image = cut(stored.image, part);
    stored.part = part;
  }
  if (stored.inks) inks_to_rgb(stored.image);
  return apply_orientation(std::move(stored.image), turn);
}

// The stated size, turned.
ImageInfo upright(ImageInfo info, std::string_view format) {
  info.format = format;
  const bool swap = info.orientation >= 5;
  info.width = swap ? info.stored_height : info.stored_width;
  info.height = swap ? info.stored_width : info.stored_height;
  return info;
}

template <class F>
auto in_file(const std::filesystem::path& path, F&& f) {
  const auto file = MappedFile::open(path);
  try {
    return f(file->bytes());
  } catch (Error& e) {
    e.add_context("in file '" + path.string() + "'");
    throw;
  }
}

}  // namespace

Image decode_image(std::span<const std::byte> bytes, const DecodeLimits& limits) {
  Request request;
  request.limits = limits;
  Stored stored = decode(image_format(bytes), bytes, request);
  return finished(stored, std::nullopt, limits.upright ? stored.orientation : 1);
}

DecodedImage decode_picture(std::span<const std::byte> bytes, const DecodeOptions& options) {
  const Request request{options.limits, options.at_least, options.region, options.metadata || options.to_srgb};
  DecodedImage out;
  out.format = image_format(bytes);
  Stored stored = decode(out.format, bytes, request);
  const int turn = options.limits.upright ? stored.orientation : 1;
  if (options.to_srgb && !stored.metadata.icc.empty()) {
    if (std::string why; apply_profile(stored, why)) {
      stored.metadata.icc.clear();
    } else {
      stored.warnings.push_back("the colour profile is not applied: " + why);
    }
  }
  out.image = finished(stored, options.region, turn);
  out.full_width = turn >= 5 ? stored.height : stored.width;
  out.full_height = turn >= 5 ? stored.width : stored.height;
  out.scale = 1.0 / stored.shrink;
  out.region = to_upright(stored.part, stored.width, stored.height, turn);
  out.orientation = stored.orientation;
  if (options.metadata) out.metadata = std::move(stored.metadata);
  out.warnings = std::move(stored.warnings);
  return out;
}

ImageInfo probe_image(std::span<const std::byte> bytes) {
  const std::string_view format = image_format(bytes);
  if (format == "jpeg") return upright(probe_jpeg(bytes), format);
  if (format == "png") return upright(probe_png(bytes), format);
  if (format == "webp") return upright(probe_webp(bytes), format);
  if (format == "bmp") return upright(probe_bmp(bytes), format);
  if (format == "pnm") return upright(probe_pnm(bytes), format);
  if (format == "tiff") return upright(probe_tiff(bytes), format);
  if (format == "jpeg2000") return upright(probe_jpeg2000(bytes), format);
  if (format == "heic" || format == "avif") return upright(probe_heif(bytes), format);
  if (format == "jpegxl") return upright(probe_jxl(bytes), format);
  if (format == "raw") return upright(probe_raw(bytes), format);
  if (format == "gif") return upright(probe_gif(bytes), format);
  if (format == "tga") return upright(probe_tga(bytes), format);
  unknown(bytes);
}

Image read_image(const std::filesystem::path& path, const DecodeLimits& limits) {
  return in_file(path, [&](std::span<const std::byte> bytes) { return decode_image(bytes, limits); });
}

DecodedImage open_picture(const std::filesystem::path& path, const DecodeOptions& options) {
  return in_file(path, [&](std::span<const std::byte> bytes) { return decode_picture(bytes, options); });
}

ImageInfo probe_image(const std::filesystem::path& path) {
  return in_file(path, [&](std::span<const std::byte> bytes) { return probe_image(bytes); });
}

}  // namespace sdx::media
