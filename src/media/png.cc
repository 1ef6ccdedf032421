// libpng, too, reports errors through longjmp: the functions that call setjmp hold no objects with destructors.

#include <png.h>

#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "media/codecs.h"

// What the static library reads in place of stderr: see cmake/archives.cmake.
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
  char message[160] = "";

  Reader() = default;
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
};

void on_error(png_structp png, png_const_charp text) {
  auto* reader = static_cast<Reader*>(png_get_error_ptr(png));
  std::snprintf(reader->message, sizeof reader->message, "%s", text);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

void on_read(png_structp png, png_bytep out, png_size_t size) {
  auto* reader = static_cast<Reader*>(png_get_io_ptr(png));
  if (size > reader->left) png_error(png, "it ends too early");
  std::memcpy(out, reader->data, size);
  reader->data += size;
  reader->left -= size;
}

bool begin(Reader& r) {
  if (setjmp(png_jmpbuf(r.png)) != 0) return false;
  png_set_read_fn(r.png, &r, on_read);
  png_set_user_limits(r.png, 65535, 65535);
  png_set_chunk_malloc_max(r.png, 8'000'000);  // of text, profiles and other side information
  png_set_chunk_cache_max(r.png, 64);
  png_read_info(r.png, r.info);
  png_set_expand(r.png);  // palettes to RGB, small greys to 8 bits, tRNS to opacity
  png_set_scale_16(r.png);
  png_set_gray_to_rgb(r.png);
  png_set_interlace_handling(r.png);
  png_read_update_info(r.png, r.info);
  return true;
}

bool read_rows(Reader& r, png_bytepp rows) {
  if (setjmp(png_jmpbuf(r.png)) != 0) return false;
  png_read_image(r.png, rows);
  png_read_end(r.png, nullptr);
  return true;
}

[[noreturn]] void damaged(const Reader& r) { fail(ErrorCode::invalid_argument, "the PNG image is damaged: {}", r.message); }

}  // namespace

Image decode_png(std::span<const std::byte> bytes, const DecodeLimits& limits) {
  Reader r;
  r.data = reinterpret_cast<const unsigned char*>(bytes.data());
  r.left = bytes.size();
  r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, on_error, on_warning);
  if (r.png != nullptr) r.info = png_create_info_struct(r.png);
  if (r.info == nullptr) fail(ErrorCode::out_of_memory, "libpng has no memory");
  if (!begin(r)) damaged(r);
  check_size(png_get_image_width(r.png, r.info), png_get_image_height(r.png, r.info), limits);
  const int channels = png_get_channels(r.png, r.info);
  Image image = Image::blank(static_cast<int>(png_get_image_width(r.png, r.info)),
                             static_cast<int>(png_get_image_height(r.png, r.info)), channels);
  if (png_get_rowbytes(r.png, r.info) != image.stride()) {
    fail(ErrorCode::not_implemented, "the PNG image has an unusual pixel format ({} channels of {} bits)", channels,
         png_get_bit_depth(r.png, r.info));
  }
  std::vector<png_bytep> rows(static_cast<std::size_t>(image.height));
  for (int y = 0; y < image.height; ++y) rows[static_cast<std::size_t>(y)] = image.row(y);
  if (!read_rows(r, rows.data())) damaged(r);
  return image;
}

std::string encode_png(const Image& image) {
  check_pixels(image);
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = image.channels == 1 ? PNG_FORMAT_GRAY : image.channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::string out(size, '\0');
  if (png_image_write_to_memory(&png, out.data(), &size, 0, image.pixels.data(), 0, nullptr) == 0) {
    fail(ErrorCode::runtime_failure, "cannot write the PNG: {}", png.message);
  }
  out.resize(size);
  return out;
}

}  // namespace sdx::media
