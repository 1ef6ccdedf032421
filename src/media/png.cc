#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "media/codecs.h"
#include "media/metadata/exif.h"
#include "media/png_error.h"

// Replaces stderr in the static library: see cmake/archives.cmake.
extern "C" {
extern std::FILE* sdx_png16_stderr;
std::FILE* sdx_png16_stderr = stderr;
}

namespace sdx::media {
namespace {

struct Reader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  const unsigned char* data = nullptr;
  std::size_t left = 0;
  PngMessage message;

  explicit Reader(std::span<const std::byte> bytes)
      : data(reinterpret_cast<const unsigned char*>(bytes.data())), left(bytes.size()) {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &message, png_failed, png_warned);
    if (png != nullptr) info = png_create_info_struct(png);
    if (info == nullptr) fail(ErrorCode::out_of_memory, "libpng has no memory");
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
};

void on_read(png_structp png, png_bytep out, png_size_t size) {
  auto* reader = static_cast<Reader*>(png_get_io_ptr(png));
  if (size > reader->left) png_error(png, "it ends too early");
  std::memcpy(out, reader->data, size);
  reader->data += size;
  reader->left -= size;
}

bool read_header(Reader& r) {
  if (setjmp(png_jmpbuf(r.png)) != 0) return false;
  png_set_read_fn(r.png, &r, on_read);
  png_set_user_limits(r.png, 0x7FFFFFFF, 0x7FFFFFFF);  // check_size() says it better
  png_set_chunk_malloc_max(r.png, 8'000'000);          // of text, profiles and other side information
  png_set_chunk_cache_max(r.png, 64);
  png_read_info(r.png, r.info);
  return true;
}

bool set_conversions(Reader& r) {
  if (setjmp(png_jmpbuf(r.png)) != 0) return false;
  png_set_expand(r.png);    // palettes to RGB, small greys to 8 bits, tRNS to opacity
  png_set_strip_16(r.png);  // the high byte
  png_set_gray_to_rgb(r.png);
  png_set_interlace_handling(r.png);
  png_read_update_info(r.png, r.info);
  return true;
}

bool read_rows(Reader& r, png_bytepp rows) {
  if (setjmp(png_jmpbuf(r.png)) != 0) return false;
  png_read_image(r.png, rows);
  png_read_end(r.png, r.info);
  return true;
}

std::string_view exif_of(const Reader& r) {
  png_uint_32 size = 0;
  png_bytep data = nullptr;
  if (png_get_eXIf_1(r.png, r.info, &size, &data) == 0) return {};
  return {reinterpret_cast<const char*>(data), size};
}

bool has_profile(const Reader& r) { return png_get_valid(r.png, r.info, PNG_INFO_iCCP) != 0; }

void read_metadata(const Reader& r, Metadata& out) {
  out.exif = exif_of(r);
  png_charp name = nullptr;
  int compression = 0;
  png_bytep profile = nullptr;
  png_uint_32 size = 0;
  if (png_get_iCCP(r.png, r.info, &name, &compression, &profile, &size) != 0) {
    out.icc.assign(reinterpret_cast<const char*>(profile), size);
  }
  png_textp texts = nullptr;
  int count = 0;
  png_get_text(r.png, r.info, &texts, &count);
  for (int i = 0; i < count; ++i) {
    if (std::strcmp(texts[i].key, "XML:com.adobe.xmp") != 0) continue;
    const bool long_text = texts[i].compression >= PNG_ITXT_COMPRESSION_NONE;
    out.xmp.assign(texts[i].text, long_text ? texts[i].itxt_length : texts[i].text_length);
  }
  png_uint_32 x = 0, y = 0;
  int unit = 0;
  if (png_get_pHYs(r.png, r.info, &x, &y, &unit) != 0 && unit == PNG_RESOLUTION_METER) out.dpi = x * 0.0254;
  if (out.dpi == 0) out.dpi = read_exif(out.exif).dpi;
}

[[noreturn]] void damaged(const Reader& r) { fail(ErrorCode::invalid_argument, "the PNG image is damaged: {}", r.message.text); }

}  // namespace

Stored decode_png(std::span<const std::byte> bytes, const Request& request) {
  Reader r(bytes);
  if (!read_header(r)) damaged(r);
  check_size(png_get_image_width(r.png, r.info), png_get_image_height(r.png, r.info), request.limits);
  Stored out;
  out.grey = (png_get_color_type(r.png, r.info) & PNG_COLOR_MASK_COLOR) == 0;
  if (!set_conversions(r)) damaged(r);
  const int channels = png_get_channels(r.png, r.info);
  out.width = static_cast<int>(png_get_image_width(r.png, r.info));
  out.height = static_cast<int>(png_get_image_height(r.png, r.info));
  out.image = Image::blank(out.width, out.height, channels);
  if (png_get_rowbytes(r.png, r.info) != out.image.stride()) {
    fail(ErrorCode::not_implemented, "the PNG image has an unusual pixel format ({} channels of {} bits)", channels,
         png_get_bit_depth(r.png, r.info));
  }
  std::vector<png_bytep> rows(static_cast<std::size_t>(out.height));
  for (int y = 0; y < out.height; ++y) rows[static_cast<std::size_t>(y)] = out.image.row(y);
  if (!read_rows(r, rows.data())) damaged(r);
  out.orientation = read_exif(exif_of(r)).orientation;  // the chunk may come behind the pixels
  if (request.metadata) read_metadata(r, out.metadata);
  return out;
}

ImageInfo probe_png(std::span<const std::byte> bytes) {
  Reader r(bytes);
  if (!read_header(r)) damaged(r);
  ImageInfo info;
  info.stored_width = static_cast<int>(png_get_image_width(r.png, r.info));
  info.stored_height = static_cast<int>(png_get_image_height(r.png, r.info));
  info.orientation = read_exif(exif_of(r)).orientation;
  info.alpha =
      (png_get_color_type(r.png, r.info) & PNG_COLOR_MASK_ALPHA) != 0 || png_get_valid(r.png, r.info, PNG_INFO_tRNS) != 0;
  info.icc = has_profile(r);
  return info;
}

}  // namespace sdx::media
