// JPEG 2000, as .jp2 files and bare code streams, through OpenJPEG.

#include <openjpeg.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "media/codecs.h"

// Replaces stdout and stderr in the static library: see cmake/archives.cmake.
extern "C" {
extern std::FILE* sdx_openjp2_stdout;
extern std::FILE* sdx_openjp2_stderr;
std::FILE* sdx_openjp2_stdout = stdout;
std::FILE* sdx_openjp2_stderr = stderr;
}

namespace sdx::media {
namespace {

struct Source {
  std::span<const std::byte> bytes;
  std::size_t at = 0;
};

OPJ_SIZE_T on_read(void* out, OPJ_SIZE_T count, void* user) {
  auto* s = static_cast<Source*>(user);
  const std::size_t n = std::min<std::size_t>(count, s->bytes.size() - s->at);
  if (n == 0) return static_cast<OPJ_SIZE_T>(-1);
  std::memcpy(out, s->bytes.data() + s->at, n);
  s->at += n;
  return n;
}

OPJ_OFF_T on_skip(OPJ_OFF_T count, void* user) {
  auto* s = static_cast<Source*>(user);
  if (count < 0) return -1;
  const std::size_t n = std::min<std::size_t>(static_cast<std::size_t>(count), s->bytes.size() - s->at);
  s->at += n;
  return static_cast<OPJ_OFF_T>(n);
}

OPJ_BOOL on_seek(OPJ_OFF_T to, void* user) {
  auto* s = static_cast<Source*>(user);
  if (to < 0 || static_cast<std::size_t>(to) > s->bytes.size()) return OPJ_FALSE;
  s->at = static_cast<std::size_t>(to);
  return OPJ_TRUE;
}

void on_message(const char*, void*) {}

// OpenJPEG's streams and codecs are both void*.
struct Release {
  void operator()(opj_image_t* i) const { opj_image_destroy(i); }
};
struct Handles {
  opj_stream_t* stream = opj_stream_default_create(OPJ_TRUE);
  opj_codec_t* codec = nullptr;

  explicit Handles(OPJ_CODEC_FORMAT format) : codec(opj_create_decompress(format)) {}
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;
  ~Handles() {
    if (codec != nullptr) opj_destroy_codec(codec);
    if (stream != nullptr) opj_stream_destroy(stream);
  }
};

[[noreturn]] void damaged(const char* why) { fail(ErrorCode::invalid_argument, "the JPEG 2000 image is damaged: {}", why); }

// Component c at (x, y) of the picture, as 8 bits.
int sample(const opj_image_comp_t& c, std::uint32_t x, std::uint32_t y) {
  const std::uint32_t u = std::min(x / std::max(c.dx, 1U), c.w - 1);
  const std::uint32_t v = std::min(y / std::max(c.dy, 1U), c.h - 1);
  std::int64_t value = c.data[static_cast<std::size_t>(v) * c.w + u];
  if (c.sgnd != 0) value += std::int64_t{1} << (c.prec - 1);
  const std::int64_t most = (std::int64_t{1} << c.prec) - 1;
  return static_cast<int>(std::clamp<std::int64_t>((value * 255 + most / 2) / most, 0, 255));
}

// Reads a file up to the end of its header.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes)
      : source_{bytes}, handles_(static_cast<unsigned char>(bytes[0]) == 0xFF ? OPJ_CODEC_J2K : OPJ_CODEC_JP2) {
    if (handles_.stream == nullptr || handles_.codec == nullptr) fail(ErrorCode::out_of_memory, "OpenJPEG has no memory");
    opj_stream_set_user_data(handles_.stream, &source_, nullptr);
    opj_stream_set_user_data_length(handles_.stream, bytes.size());
    opj_stream_set_read_function(handles_.stream, on_read);
    opj_stream_set_skip_function(handles_.stream, on_skip);
    opj_stream_set_seek_function(handles_.stream, on_seek);
    opj_set_info_handler(handles_.codec, on_message, nullptr);
    opj_set_warning_handler(handles_.codec, on_message, nullptr);
    opj_set_error_handler(handles_.codec, on_message, nullptr);
    opj_dparameters_t parameters;
    opj_set_default_decoder_parameters(&parameters);
    if (opj_setup_decoder(handles_.codec, &parameters) == OPJ_FALSE) damaged("it cannot be decoded");
    opj_image_t* raw = nullptr;
    const bool has_header = opj_read_header(handles_.stream, handles_.codec, &raw) != OPJ_FALSE;
    image_.reset(raw);
    if (!has_header || !image_) damaged("its header");
    if (image_->x1 <= image_->x0 || image_->y1 <= image_->y0) damaged("it has no pixels");
    if (image_->numcomps < 1 || image_->numcomps > 5) damaged("its number of components");
  }
  const opj_image_t& image() const { return *image_; }
  std::uint32_t colors() const { return image_->numcomps >= 3 ? 3 : 1; }
  bool alpha() const { return image_->numcomps == colors() + 1; }
  void decode() {
    if (opj_decode(handles_.codec, handles_.stream, image_.get()) == OPJ_FALSE) damaged("its data end too early");
  }

 private:
  Source source_;
  Handles handles_;
  std::unique_ptr<opj_image_t, Release> image_;
};

std::uint8_t clamped(double v) { return static_cast<std::uint8_t>(std::clamp(v + 0.5, 0.0, 255.0)); }

}  // namespace

Image decode_jpeg2000(std::span<const std::byte> bytes, const DecodeLimits& limits) {
  Reader reader(bytes);
  const opj_image_t* decoded = &reader.image();
  const std::uint32_t width = decoded->x1 - decoded->x0, height = decoded->y1 - decoded->y0;
  check_size(width, height, limits);
  reader.decode();
  const std::uint32_t colors = reader.colors();
  for (std::uint32_t c = 0; c < decoded->numcomps; ++c) {
    const opj_image_comp_t& part = decoded->comps[c];
    if (part.data == nullptr || part.w == 0 || part.h == 0 || part.prec < 1 || part.prec > 31) damaged("a component");
  }
  Image image = Image::blank(static_cast<int>(width), static_cast<int>(height), reader.alpha() ? 4 : 3);
  for (std::uint32_t y = 0; y < height; ++y) {
    std::uint8_t* to = image.row(static_cast<int>(y));
    for (std::uint32_t x = 0; x < width; ++x, to += image.channels) {
      for (std::uint32_t c = 0; c < 3; ++c) to[c] = static_cast<std::uint8_t>(sample(decoded->comps[colors == 3 ? c : 0], x, y));
      if (colors == 3 && decoded->color_space == OPJ_CLRSPC_SYCC) {  // ITU-R BT.601, full range
        const double luma = to[0], blue = to[1] - 128.0, red = to[2] - 128.0;
        to[0] = clamped(luma + 1.402 * red);
        to[1] = clamped(luma - 0.344136 * blue - 0.714136 * red);
        to[2] = clamped(luma + 1.772 * blue);
      }
      if (image.channels == 4) to[3] = static_cast<std::uint8_t>(sample(decoded->comps[colors], x, y));
    }
  }
  return image;
}

ImageInfo probe_jpeg2000(std::span<const std::byte> bytes) {
  const Reader reader(bytes);
  ImageInfo info;
  info.stored_width = static_cast<int>(std::min<std::uint32_t>(reader.image().x1 - reader.image().x0, INT32_MAX));
  info.stored_height = static_cast<int>(std::min<std::uint32_t>(reader.image().y1 - reader.image().y0, INT32_MAX));
  info.alpha = reader.alpha();
  info.icc = reader.image().icc_profile_len > 0;
  return info;
}

}  // namespace sdx::media
