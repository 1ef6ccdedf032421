#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "media/codecs.h"
#include "media/jpeg_error.h"
#include "media/metadata/exif.h"
#include "media/metadata/iptc.h"

// Replaces stderr in the static library: see cmake/archives.cmake.
extern "C" {
extern std::FILE* sdx_jpeg_stderr;
std::FILE* sdx_jpeg_stderr = stderr;
}

namespace sdx::media {
namespace {

// A progressive file of some kilobytes can hold thousands of scans over a large picture, each as costly as a whole
// decode; real encoders write about ten.
constexpr int kMaxScans = 200;

// A cut picture's pixels at its edges depend on their neighbours: of 4:2:0 on those of the next block, 16 pixels.
constexpr unsigned kMargin = 32;

constexpr std::string_view kExif{"Exif\0\0", 6}, kXmp{"http://ns.adobe.com/xap/1.0/\0", 29};

void on_progress(j_common_ptr info) {
  auto* decoder = reinterpret_cast<j_decompress_ptr>(info);
  if (decoder->input_scan_number > kMaxScans) {
    auto* state = reinterpret_cast<JpegError*>(info->err);
    std::snprintf(state->message, sizeof state->message, "it has more than %d scans", kMaxScans);
    longjmp(state->jump, 1);
  }
}

struct Decoder {
  JpegError error;
  jpeg_progress_mgr progress;
  jpeg_decompress_struct info;
  bool created = false;

  Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder() {
    if (created) jpeg_destroy_decompress(&info);
  }
  bool inks() const { return info.out_color_space == JCS_CMYK; }
};

bool begin(Decoder& d, std::span<const std::byte> bytes, bool metadata) {
  install(d.error);
  d.info.err = &d.error.manager;
  if (setjmp(d.error.jump) != 0) return false;
  jpeg_create_decompress(&d.info);
  d.created = true;
  d.progress = {};
  d.progress.progress_monitor = on_progress;
  d.info.progress = &d.progress;
  jpeg_save_markers(&d.info, JPEG_APP0 + 1, 0xFFFF);
  if (metadata) {
    jpeg_save_markers(&d.info, JPEG_APP0 + 2, 0xFFFF);
    jpeg_save_markers(&d.info, JPEG_APP0 + 13, 0xFFFF);
  }
  jpeg_mem_src(&d.info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&d.info, TRUE);
  const bool inks = d.info.jpeg_color_space == JCS_CMYK || d.info.jpeg_color_space == JCS_YCCK;
  d.info.out_color_space = inks ? JCS_CMYK : JCS_RGB;
  return true;
}

// A profile may be spread over many segments.
bool read_profile(Decoder& d, unsigned char** data, unsigned* size) {
  if (setjmp(d.error.jump) != 0) return false;
  return jpeg_read_icc_profile(&d.info, data, size) != 0;
}

// The wanted part of the shrunken picture, in its pixels.
struct Window {
  unsigned x, y, width, height;
  bool whole;
};

bool start(Decoder& d) {
  if (setjmp(d.error.jump) != 0) return false;
  jpeg_start_decompress(&d.info);
  return true;
}

// Full inks are 255. Adobe's files, nearly all there are, store them inverted.
void straighten(unsigned char* row, unsigned width, bool inverted) {
  if (!inverted) return;
  for (unsigned i = 0; i < width * 4; ++i) row[i] = static_cast<unsigned char>(255 - row[i]);
}

// `line` is space for a row of the whole picture; null if rows go directly to `out`.
bool read_rows(Decoder& d, const Window& window, unsigned char* out, std::size_t stride, unsigned char* line) {
  if (setjmp(d.error.jump) != 0) return false;
  const unsigned size = static_cast<unsigned>(d.info.output_components);
  unsigned first = 0;  // the column that a row read begins at
  unsigned skipped = 0;
  if (!window.whole) {
    first = window.x > kMargin ? window.x - kMargin : 0;
    unsigned width = std::min(window.x + window.width + kMargin, d.info.output_width) - first;
    jpeg_crop_scanline(&d.info, &first, &width);
    if (window.y > kMargin) skipped = jpeg_skip_scanlines(&d.info, window.y - kMargin);
  }
  for (unsigned y = skipped; y < window.y + window.height; ++y) {
    unsigned char* target = out + (y - std::min(y, window.y)) * stride;
    unsigned char* row = line != nullptr ? line : target;
    jpeg_read_scanlines(&d.info, &row, 1);
    if (line != nullptr && y >= window.y) std::memcpy(target, line + (window.x - first) * size, std::size_t{window.width} * size);
    if (d.inks() && y >= window.y) straighten(target, window.width, d.info.saw_Adobe_marker != 0);
  }
  if (window.whole) jpeg_finish_decompress(&d.info);
  return true;
}

std::string_view text_of(const jpeg_marker_struct& m) { return {reinterpret_cast<const char*>(m.data), m.data_length}; }

int orientation(const Decoder& d) {
  for (const auto* m = d.info.marker_list; m != nullptr; m = m->next) {
    if (m->marker != JPEG_APP0 + 1 || !text_of(*m).starts_with(kExif)) continue;
    const int found = read_exif(text_of(*m).substr(kExif.size())).orientation;
    if (found != 1) return found;
  }
  return 1;
}

void read_metadata(Decoder& d, Metadata& out) {
  for (const auto* m = d.info.marker_list; m != nullptr; m = m->next) {
    const std::string_view text = text_of(*m);
    if (m->marker == JPEG_APP0 + 1 && text.starts_with(kExif) && out.exif.empty()) out.exif = text.substr(kExif.size());
    if (m->marker == JPEG_APP0 + 1 && text.starts_with(kXmp) && out.xmp.empty()) out.xmp = text.substr(kXmp.size());
    if (m->marker == JPEG_APP0 + 13 && out.iptc.empty()) out.iptc = iptc_of(text);
  }
  unsigned char* profile = nullptr;
  unsigned size = 0;
  if (read_profile(d, &profile, &size)) out.icc.assign(reinterpret_cast<const char*>(profile), size);
  std::free(profile);
  if (d.info.saw_JFIF_marker != 0 && d.info.density_unit == 1) out.dpi = d.info.X_density;
  if (d.info.saw_JFIF_marker != 0 && d.info.density_unit == 2) out.dpi = d.info.X_density * 2.54;
  if (out.dpi == 0) out.dpi = read_exif(out.exif).dpi;
}

[[noreturn]] void damaged(const Decoder& d) {
  fail(ErrorCode::invalid_argument, "the JPEG image is damaged: {}", d.error.message);
}

int shrink_for(int longer, int at_least) {
  if (at_least <= 0) return 1;
  int shrink = 1;
  while (shrink < 8 && (longer + shrink * 2 - 1) / (shrink * 2) >= at_least) shrink *= 2;
  return shrink;
}

Window window_of(const Rectangle& part, int shrink) {
  const int x = part.x / shrink, y = part.y / shrink;
  const int right = (part.x + part.width + shrink - 1) / shrink, bottom = (part.y + part.height + shrink - 1) / shrink;
  return {static_cast<unsigned>(x), static_cast<unsigned>(y), static_cast<unsigned>(right - x), static_cast<unsigned>(bottom - y),
          false};
}

}  // namespace

Stored decode_jpeg(std::span<const std::byte> bytes, const Request& request) {
  Decoder d;
  if (!begin(d, bytes, request.metadata)) damaged(d);
  check_size(d.info.image_width, d.info.image_height, request.limits);
  Stored out;
  out.width = static_cast<int>(d.info.image_width);
  out.height = static_cast<int>(d.info.image_height);
  out.orientation = orientation(d);  // before decoding ends: libjpeg then frees the markers
  out.grey = d.info.jpeg_color_space == JCS_GRAYSCALE;
  if (request.metadata) read_metadata(d, out.metadata);
  const Rectangle whole{0, 0, out.width, out.height};
  const Rectangle part =
      !request.region ? whole
                      : stored_region(*request.region, out.width, out.height, request.limits.upright ? out.orientation : 1);
  out.shrink = shrink_for(std::max(part.width, part.height), request.at_least);
  d.info.scale_num = 8 / static_cast<unsigned>(out.shrink);
  d.info.scale_denom = 8;
  if (!start(d)) damaged(d);
  Window window = window_of(part, out.shrink);
  window.whole = window.width == d.info.output_width && window.height == d.info.output_height;
  out.part = {static_cast<int>(window.x) * out.shrink, static_cast<int>(window.y) * out.shrink,
              static_cast<int>(window.width) * out.shrink, static_cast<int>(window.height) * out.shrink};
  if (out.shrink == 1) out.part = part;
  out.inks = d.inks();
  out.image = Image::blank(static_cast<int>(window.width), static_cast<int>(window.height), out.inks ? 4 : 3);
  std::vector<unsigned char> line;
  if (!window.whole) line.resize(std::size_t{d.info.output_width} * 4);
  if (!read_rows(d, window, out.image.pixels.data(), out.image.stride(), line.empty() ? nullptr : line.data())) damaged(d);
  return out;
}

ImageInfo probe_jpeg(std::span<const std::byte> bytes) {
  Decoder d;
  if (!begin(d, bytes, true)) damaged(d);
  ImageInfo info;
  info.stored_width = static_cast<int>(d.info.image_width);
  info.stored_height = static_cast<int>(d.info.image_height);
  info.orientation = orientation(d);
  Metadata metadata;
  read_metadata(d, metadata);
  info.icc = !metadata.icc.empty();
  return info;
}

}  // namespace sdx::media
