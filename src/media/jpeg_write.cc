#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "media/codecs.h"
#include "media/jpeg_error.h"
#include "media/metadata/iptc.h"

namespace sdx::media {
namespace {

constexpr std::size_t kSegment = 65533;  // bytes of a marker segment, without its length

struct Encoder {
  JpegError error;
  jpeg_compress_struct info;
  bool created = false;
  unsigned char* data = nullptr;
  unsigned long size = 0;

  Encoder() = default;
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;
  ~Encoder() {
    if (created) jpeg_destroy_compress(&info);
    std::free(data);
  }
};

// Whole segments, as they stand in the file.
struct Segments {
  std::string exif, xmp, iptc;
  const std::string* icc = nullptr;
};

void write_segment(Encoder& e, int marker, const std::string& bytes) {
  if (bytes.empty()) return;
  jpeg_write_marker(&e.info, marker, reinterpret_cast<const JOCTET*>(bytes.data()), static_cast<unsigned>(bytes.size()));
}

bool begin(Encoder& e, const Image& image, J_COLOR_SPACE colors, int quality, double dpi, const Segments& segments) {
  install(e.error);
  e.info.err = &e.error.manager;
  if (setjmp(e.error.jump) != 0) return false;
  jpeg_create_compress(&e.info);
  e.created = true;
  jpeg_mem_dest(&e.info, &e.data, &e.size);
  e.info.image_width = static_cast<JDIMENSION>(image.width);
  e.info.image_height = static_cast<JDIMENSION>(image.height);
  e.info.input_components = colors == JCS_GRAYSCALE ? 1 : 3;
  e.info.in_color_space = colors;
  jpeg_set_defaults(&e.info);
  jpeg_set_quality(&e.info, quality, TRUE);
  if (dpi > 0) {
    e.info.density_unit = 1;
    e.info.X_density = e.info.Y_density = static_cast<UINT16>(std::clamp(std::lround(dpi), 1L, 65535L));
  }
  jpeg_start_compress(&e.info, TRUE);
  write_segment(e, JPEG_APP0 + 1, segments.exif);
  write_segment(e, JPEG_APP0 + 1, segments.xmp);
  write_segment(e, JPEG_APP0 + 13, segments.iptc);
  if (segments.icc != nullptr && !segments.icc->empty()) {
    jpeg_write_icc_profile(&e.info, reinterpret_cast<const JOCTET*>(segments.icc->data()),
                           static_cast<unsigned>(segments.icc->size()));
  }
  return true;
}

// Rows of three channels; opacity is blended over the background, or dropped.
void convert_row(const Image& image, int y, const Ink* background, unsigned char* line) {
  const std::uint8_t* from = image.row(y);
  if (background == nullptr || image.channels != 4) {
    for (int x = 0; x < image.width; ++x, from += image.channels) {
      for (int c = 0; c < 3; ++c) line[x * 3 + c] = from[image.channels == 1 ? 0 : c];
    }
    return;
  }
  const unsigned behind[3] = {background->red, background->green, background->blue};
  for (int x = 0; x < image.width; ++x, from += 4) {
    const unsigned alpha = from[3];
    for (int c = 0; c < 3; ++c) {
      line[x * 3 + c] = static_cast<unsigned char>((from[c] * alpha + behind[c] * (255 - alpha) + 127) / 255);
    }
  }
}

// `line` is space for one row of RGB, for images whose own rows have another layout.
bool write_rows(Encoder& e, const Image& image, const Ink* background, unsigned char* line) {
  if (setjmp(e.error.jump) != 0) return false;
  while (e.info.next_scanline < e.info.image_height) {
    const int y = static_cast<int>(e.info.next_scanline);
    if (line != nullptr) convert_row(image, y, background, line);
    auto* row = line != nullptr ? line : const_cast<unsigned char*>(image.row(y));  // libjpeg reads only
    jpeg_write_scanlines(&e.info, &row, 1);
  }
  jpeg_finish_compress(&e.info);
  return true;
}

std::string encoded(const Image& image, bool grey, int quality, double dpi, const Ink* background, const Segments& segments) {
  check_pixels(image);
  if (quality < 1 || quality > 100) fail(ErrorCode::invalid_argument, "JPEG quality must be 1 to 100, received {}", quality);
  Encoder e;
  std::vector<unsigned char> line;
  if (image.channels != (grey ? 1 : 3)) line.resize(static_cast<std::size_t>(image.width) * 3);
  if (!begin(e, image, grey ? JCS_GRAYSCALE : JCS_RGB, quality, dpi, segments) ||
      !write_rows(e, image, background, line.empty() ? nullptr : line.data())) {
    fail(ErrorCode::runtime_failure, "cannot write the JPEG: {}", e.error.message);
  }
  return {reinterpret_cast<const char*>(e.data), e.size};
}

// Metadata that exceed one segment are left out.
std::string segment(std::string_view head, std::string_view body) {
  if (body.empty() || head.size() + body.size() > kSegment) return "";
  return std::string(head) + std::string(body);
}

}  // namespace

std::string encode_jpeg(const Image& image, int quality) { return encoded(image, false, quality, 0, nullptr, {}); }

std::string write_jpeg(const Image& image, const Writing& writing) {
  const Metadata& m = writing.metadata;
  Segments segments;
  segments.exif = segment({"Exif\0\0", 6}, m.exif);
  segments.xmp = segment({"http://ns.adobe.com/xap/1.0/\0", 29}, m.xmp);
  if (!m.iptc.empty()) segments.iptc = segment("", iptc_segment(m.iptc));
  constexpr std::size_t kMostProfile = 255 * (kSegment - 14);  // segments are counted in one byte
  if (m.icc.size() <= kMostProfile) segments.icc = &m.icc;
  return encoded(image, image.channels == 1, writing.quality, writing.dpi, &writing.background, segments);
}

}  // namespace sdx::media
