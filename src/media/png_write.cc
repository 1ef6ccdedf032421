#include <zlib.h>

#include <cmath>

#include "base/error.h"
#include "media/codecs.h"
#include "media/png_error.h"

namespace sdx::media {
namespace {

struct Writer {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::string out;
  PngMessage message;

  Writer() {
    png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &message, png_failed, png_warned);
    if (png != nullptr) info = png_create_info_struct(png);
    if (info == nullptr) fail(ErrorCode::out_of_memory, "libpng has no memory");
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { png_destroy_write_struct(&png, &info); }
};

void on_write(png_structp png, png_bytep data, png_size_t size) {
  auto* writer = static_cast<Writer*>(png_get_io_ptr(png));
  bool good = true;
  try {
    writer->out.append(reinterpret_cast<const char*>(data), size);
  } catch (const std::exception&) {
    good = false;  // an exception must not pass through libpng
  }
  if (!good) png_error(png, "no memory");
}

void on_flush(png_structp) {}

// `texts` are libpng's own structures that point into the caller's strings.
bool write_all(Writer& w, const Image& image, const Writing& writing, png_textp texts, int text_count, png_bytepp rows) {
  if (setjmp(png_jmpbuf(w.png)) != 0) return false;
  const Metadata& m = writing.metadata;
  png_set_write_fn(w.png, &w, on_write, on_flush);
  const int color = image.channels == 1   ? PNG_COLOR_TYPE_GRAY
                    : image.channels == 3 ? PNG_COLOR_TYPE_RGB
                                          : PNG_COLOR_TYPE_RGB_ALPHA;
  png_set_IHDR(w.png, w.info, static_cast<png_uint_32>(image.width), static_cast<png_uint_32>(image.height), 8, color,
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  // Photographs: a fifteenth of the time that libpng's own choice takes (1280x853: 59 instead of 895 ms; 768x512: 49 instead of
  // 309), and 0 to 15 % larger.
  png_set_compression_level(w.png, 1);
  png_set_compression_strategy(w.png, Z_RLE);
  png_set_filter(w.png, PNG_FILTER_TYPE_BASE, PNG_FILTER_UP);
  if (!m.icc.empty()) {
    // A profile that libpng finds fault with is left out, with a warning.
    png_set_benign_errors(w.png, 1);
    png_set_iCCP(w.png, w.info, "icc", PNG_COMPRESSION_TYPE_BASE, reinterpret_cast<png_const_bytep>(m.icc.data()),
                 static_cast<png_uint_32>(m.icc.size()));
  }
  if (!m.exif.empty()) {
    png_set_eXIf_1(w.png, w.info, static_cast<png_uint_32>(m.exif.size()),
                   reinterpret_cast<png_bytep>(const_cast<char*>(m.exif.data())));
  }
  if (writing.dpi > 0) {
    const auto per_metre = static_cast<png_uint_32>(std::lround(writing.dpi / 0.0254));
    png_set_pHYs(w.png, w.info, per_metre, per_metre, PNG_RESOLUTION_METER);
  }
  if (text_count > 0) png_set_text(w.png, w.info, texts, text_count);
  png_write_info(w.png, w.info);
  png_write_image(w.png, rows);
  png_write_end(w.png, w.info);
  return true;
}

png_text text_chunk(const std::string& name, const std::string& value, int kind) {
  png_text text{};
  text.compression = kind;
  text.key = const_cast<char*>(name.c_str());
  text.text = const_cast<char*>(value.c_str());
  if (kind == PNG_TEXT_COMPRESSION_NONE) {
    text.text_length = value.size();
  } else {
    text.itxt_length = value.size();
  }
  return text;
}

bool ascii(const std::string& text) {
  for (const char c : text) {
    if ((c < ' ' && c != '\n') || c == '\x7F') return false;  // letters beyond ASCII are negative
  }
  return true;
}

// Source: PNG 1.2, 4.2.3: keywords are 1 to 79 printable letters of Latin-1, without spaces at an end or two in a row.
void check_keyword(const std::string& name) {
  const bool good = !name.empty() && name.size() <= 79 && ascii(name) && name.find('\n') == std::string::npos &&
                    name.front() != ' ' && name.back() != ' ' && name.find("  ") == std::string::npos;
  if (!good) {
    fail(ErrorCode::invalid_argument,
         "the tag '{}' cannot be a PNG keyword: it takes 1 to 79 letters of ASCII, no spaces at an end", name.substr(0, 100));
  }
}

}  // namespace

std::string write_png(const Image& image, const Writing& writing) {
  const Metadata& m = writing.metadata;
  const std::string xmp_name = "XML:com.adobe.xmp";
  std::vector<png_text> texts;
  if (!m.xmp.empty()) texts.push_back(text_chunk(xmp_name, m.xmp, PNG_ITXT_COMPRESSION_NONE));
  for (const auto& [name, value] : m.tags) {
    check_keyword(name);
    if (value.find('\0') != std::string::npos)
      fail(ErrorCode::invalid_argument, "the tag '{}' has a value with a zero byte", name);
    texts.push_back(text_chunk(name, value, ascii(value) ? PNG_TEXT_COMPRESSION_NONE : PNG_ITXT_COMPRESSION_NONE));
  }
  std::vector<png_bytep> rows(static_cast<std::size_t>(image.height));
  for (int y = 0; y < image.height; ++y) rows[static_cast<std::size_t>(y)] = const_cast<png_bytep>(image.row(y));
  Writer w;
  if (!write_all(w, image, writing, texts.data(), static_cast<int>(texts.size()), rows.data())) {
    fail(ErrorCode::runtime_failure, "cannot write the PNG: {}", w.message.text);
  }
  return std::move(w.out);
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
