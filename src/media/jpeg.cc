// libjpeg reports errors by calling a function that must not return. Throwing through its C frames is undefined, so the
// handler stores the message and longjmps; the functions that call setjmp hold no objects with destructors.

#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <jpeglib.h>

#include <jerror.h>

#include "base/error.h"
#include "media/codecs.h"

// What the static library reads in place of stderr: see cmake/archives.cmake.
extern "C" {
extern std::FILE* sdx_jpeg_stderr;
std::FILE* sdx_jpeg_stderr = stderr;
}

namespace sdx::media {
namespace {

// A progressive file of some kilobytes can hold thousands of scans over a large picture, each as costly as a whole
// decode; real encoders write about ten.
constexpr int kMaxScans = 200;

struct ErrorState {
  jpeg_error_mgr manager;  // first: libjpeg hands back a pointer to it
  jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

void on_error(j_common_ptr info) {
  auto* state = reinterpret_cast<ErrorState*>(info->err);
  info->err->format_message(info, state->message);
  longjmp(state->jump, 1);
}

// Warnings (level -1) about lost data make the file damaged; oddities such as stray bytes before a marker do not.
void on_message(j_common_ptr info, int level) {
  if (level >= 0) return;
  const int code = info->err->msg_code;
  if (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE || code == JWRN_MUST_RESYNC) on_error(info);
}

void on_progress(j_common_ptr info) {
  auto* decoder = reinterpret_cast<j_decompress_ptr>(info);
  if (decoder->input_scan_number > kMaxScans) {
    auto* state = reinterpret_cast<ErrorState*>(info->err);
    std::snprintf(state->message, sizeof state->message, "it has more than %d scans", kMaxScans);
    longjmp(state->jump, 1);
  }
}

void install(ErrorState& state) {
  jpeg_std_error(&state.manager);
  state.manager.error_exit = on_error;
  state.manager.emit_message = on_message;
  state.message[0] = '\0';
}

struct Decoder {
  ErrorState error;
  jpeg_progress_mgr progress;
  jpeg_decompress_struct info;
  bool created = false;

  Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder() {
    if (created) jpeg_destroy_decompress(&info);
  }
};

bool begin(Decoder& d, const unsigned char* data, unsigned long size) {
  install(d.error);
  d.info.err = &d.error.manager;
  if (setjmp(d.error.jump) != 0) return false;
  jpeg_create_decompress(&d.info);
  d.created = true;
  d.progress = {};
  d.progress.progress_monitor = on_progress;
  d.info.progress = &d.progress;
  jpeg_save_markers(&d.info, JPEG_APP0 + 1, 0xFFFF);
  jpeg_mem_src(&d.info, data, size);
  jpeg_read_header(&d.info, TRUE);
  const bool inks = d.info.jpeg_color_space == JCS_CMYK || d.info.jpeg_color_space == JCS_YCCK;
  d.info.out_color_space = inks ? JCS_CMYK : JCS_RGB;
  return true;
}

// `line` is space for one row of CMYK, null for RGB.
bool decode_rows(Decoder& d, unsigned char* out, std::size_t stride, unsigned char* line) {
  if (setjmp(d.error.jump) != 0) return false;
  jpeg_start_decompress(&d.info);
  while (d.info.output_scanline < d.info.output_height) {
    unsigned char* target = out + d.info.output_scanline * stride;
    unsigned char* row = line != nullptr ? line : target;
    jpeg_read_scanlines(&d.info, &row, 1);
    if (line == nullptr) continue;
    for (unsigned x = 0; x < d.info.output_width; ++x) {
      // Adobe's files, nearly all there are, store inks inverted.
      const unsigned char* ink = line + x * 4;
      const bool inverted = d.info.saw_Adobe_marker != 0;
      const unsigned black = inverted ? ink[3] : 255U - ink[3];
      for (unsigned c = 0; c < 3; ++c) {
        const unsigned light = inverted ? ink[c] : 255U - ink[c];
        target[x * 3 + c] = static_cast<unsigned char>((light * black + 127) / 255);
      }
    }
  }
  jpeg_finish_decompress(&d.info);
  return true;
}

// The orientation tag (0x0112) of the first image directory of an EXIF block; 1 where there is none.
int exif_orientation(const unsigned char* data, std::size_t size) {
  if (size < 14 || std::memcmp(data, "Exif\0\0", 6) != 0) return 1;
  const unsigned char* tiff = data + 6;
  const std::size_t length = size - 6;
  const bool big = tiff[0] == 'M';
  if (!big && tiff[0] != 'I') return 1;
  const auto number = [&](std::size_t at, std::size_t width) -> std::size_t {
    if (at > length || width > length - at) return 0;
    std::size_t value = 0;
    for (std::size_t i = 0; i < width; ++i) value = value << 8 | tiff[big ? at + i : at + width - 1 - i];
    return value;
  };
  const std::size_t directory = number(4, 4);
  const std::size_t entries = number(directory, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + i * 12;
    if (number(entry, 2) == 0x0112) return static_cast<int>(number(entry + 8, 2));
  }
  return 1;
}

int orientation(const Decoder& d) {
  for (const auto* m = d.info.marker_list; m != nullptr; m = m->next) {
    if (m->marker == JPEG_APP0 + 1) {
      const int found = exif_orientation(m->data, m->data_length);
      if (found != 1) return found;
    }
  }
  return 1;
}

[[noreturn]] void damaged(const Decoder& d) {
  fail(ErrorCode::invalid_argument, "the JPEG image is damaged: {}", d.error.message);
}

struct Encoder {
  ErrorState error;
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

// `line` is space for one row of RGB.
bool encode(Encoder& e, const Image& image, int quality, unsigned char* line) {
  install(e.error);
  e.info.err = &e.error.manager;
  if (setjmp(e.error.jump) != 0) return false;
  jpeg_create_compress(&e.info);
  e.created = true;
  jpeg_mem_dest(&e.info, &e.data, &e.size);
  e.info.image_width = static_cast<JDIMENSION>(image.width);
  e.info.image_height = static_cast<JDIMENSION>(image.height);
  e.info.input_components = 3;
  e.info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&e.info);
  jpeg_set_quality(&e.info, quality, TRUE);
  jpeg_start_compress(&e.info, TRUE);
  while (e.info.next_scanline < e.info.image_height) {
    const unsigned char* from = image.row(static_cast<int>(e.info.next_scanline));
    for (int x = 0; x < image.width; ++x, from += image.channels) {
      for (int c = 0; c < 3; ++c) line[x * 3 + c] = from[image.channels == 1 ? 0 : c];
    }
    jpeg_write_scanlines(&e.info, &line, 1);
  }
  jpeg_finish_compress(&e.info);
  return true;
}

}  // namespace

Image decode_jpeg(std::span<const std::byte> bytes, const DecodeLimits& limits) {
  Decoder d;
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  if (!begin(d, data, bytes.size())) damaged(d);
  check_size(d.info.image_width, d.info.image_height, limits);
  Image image = Image::blank(static_cast<int>(d.info.image_width), static_cast<int>(d.info.image_height), 3);
  const int turn = limits.upright ? orientation(d) : 1;  // before decoding ends: libjpeg then frees the markers
  std::vector<unsigned char> line;
  if (d.info.out_color_space == JCS_CMYK) line.resize(static_cast<std::size_t>(image.width) * 4);
  if (!decode_rows(d, image.pixels.data(), image.stride(), line.empty() ? nullptr : line.data())) damaged(d);
  return apply_orientation(std::move(image), turn);
}

std::string encode_jpeg(const Image& image, int quality) {
  check_pixels(image);
  if (quality < 1 || quality > 100) fail(ErrorCode::invalid_argument, "JPEG quality goes from 1 to 100, received {}", quality);
  Encoder e;
  std::vector<unsigned char> line(static_cast<std::size_t>(image.width) * 3);
  if (!encode(e, image, quality, line.data())) fail(ErrorCode::runtime_failure, "cannot write the JPEG: {}", e.error.message);
  return {reinterpret_cast<const char*>(e.data), e.size};
}

}  // namespace sdx::media
