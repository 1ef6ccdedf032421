// The steps of encoding that all formats share: choosing the format, and adapting metadata to the picture.

#include <algorithm>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/text/ascii.h"
#include "media/codecs.h"
#include "media/metadata/exif.h"
#include "media/metadata/xmp.h"
#include "media/modules.h"

namespace sdx::media {
namespace {

bool is_profile(const std::string& icc) { return icc.size() >= 128 && icc.compare(36, 4, "acsp") == 0; }

// A profile for other colours than the image has is left out: CMYK's once the inks are red, green and blue.
bool profile_fits(const std::string& icc, int channels) {
  if (!is_profile(icc)) return false;
  const std::string_view space(icc.data() + 16, 4);
  return space == (channels == 1 ? "GRAY" : "RGB ");
}

Metadata fitting(const Image& image, const EncodeOptions& options, FileFormat format, double dpi) {
  Metadata m = options.metadata;
  const bool moved = options.cropped || read_exif(m.exif).orientation != 1;  // places are those of the file as it lies
  if (!m.exif.empty()) m.exif = upright_exif(m.exif, image.width, image.height, dpi, moved);
  if (!m.xmp.empty()) m.xmp = upright_xmp(std::move(m.xmp), moved);
  if (!profile_fits(m.icc, image.channels)) m.icc.clear();
  if (format != FileFormat::png) m.xmp = xmp_with_tags(std::move(m.xmp), m.tags);
  return m;
}

}  // namespace

std::optional<FileFormat> file_format(std::string_view name) {
  const std::string text = ascii_lower(name.substr(name.starts_with('.') ? 1 : 0));
  if (text == "png") return FileFormat::png;
  if (text == "jpg" || text == "jpeg") return FileFormat::jpeg;
  if (text == "webp") return FileFormat::webp;
  if (text == "tif" || text == "tiff") return FileFormat::tiff;
  if (text == "bmp") return FileFormat::bmp;
  if (text == "avif") return FileFormat::avif;
  return std::nullopt;
}

std::string_view ending_of(FileFormat format) {
  switch (format) {
    case FileFormat::png: return ".png";
    case FileFormat::jpeg: return ".jpg";
    case FileFormat::webp: return ".webp";
    case FileFormat::tiff: return ".tif";
    case FileFormat::bmp: return ".bmp";
    case FileFormat::avif: return ".avif";
  }
  return "";
}

std::string encode(const Image& image, const EncodeOptions& options) {
  check_pixels(image);
  const FileFormat format = options.format.value_or(FileFormat::png);
  if (options.quality < 1 || options.quality > 100) {
    fail(ErrorCode::invalid_argument, "the quality of a picture must be 1 to 100, received {}", options.quality);
  }
  const double dpi = options.dpi != 0 ? options.dpi : std::clamp(options.metadata.dpi, 0.0, 65535.0);
  if (!(dpi >= 0 && dpi <= 65535)) fail(ErrorCode::invalid_argument, "the resolution must be 0 to 65535 dpi, received {}", dpi);
  const Metadata metadata = fitting(image, options, format, options.dpi);
  const Writing writing{options.quality, dpi, options.background, metadata};
  switch (format) {
    case FileFormat::png: return write_png(image, writing);
    case FileFormat::jpeg: return write_jpeg(image, writing);
    case FileFormat::webp: return write_webp(image, writing);
    case FileFormat::tiff: return write_tiff(image, writing);
    case FileFormat::bmp: return write_bmp(image, writing);
    case FileFormat::avif: return write_avif(image, writing);
  }
  fail(ErrorCode::invalid_argument, "a file format of number {}", static_cast<int>(format));
}

void write_image(const std::filesystem::path& path, const Image& image, const EncodeOptions& options) {
  EncodeOptions chosen = options;
  if (!chosen.format) chosen.format = file_format(path.extension().string());
  if (!chosen.format) {
    fail(ErrorCode::invalid_argument,
         "cannot write an image as '{}': its name must end in .png, .jpg, .jpeg, .webp, .tif, .tiff, .bmp or .avif",
         path.string());
  }
  write_file_atomically(path, encode(image, chosen));
}

}  // namespace sdx::media
