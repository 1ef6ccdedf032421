// libsdx_tiff.so: TIFF by libtiff. The first picture of a file.

#include <tiffio.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdarg>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "media/module/support.h"

namespace sdx::media {
namespace {

// A file in memory, read or grown.
struct Memory {
  const unsigned char* data = nullptr;
  std::size_t size = 0;
  std::vector<unsigned char> grown;
  std::size_t at = 0;
  bool writing = false;
  char message[200] = "";
};

Memory& memory_of(thandle_t handle) { return *static_cast<Memory*>(handle); }

tmsize_t on_read(thandle_t handle, void* out, tmsize_t count) {
  Memory& m = memory_of(handle);
  const unsigned char* data = m.writing ? m.grown.data() : m.data;
  const std::size_t size = m.writing ? m.grown.size() : m.size;
  const std::size_t n = m.at < size ? std::min(static_cast<std::size_t>(count), size - m.at) : 0;
  if (n > 0) std::memcpy(out, data + m.at, n);
  m.at += n;
  return static_cast<tmsize_t>(n);
}

tmsize_t on_write(thandle_t handle, void* data, tmsize_t count) {
  Memory& m = memory_of(handle);
  const auto n = static_cast<std::size_t>(count);
  try {
    if (m.at + n > m.grown.size()) m.grown.resize(m.at + n);
  } catch (...) {
    return 0;
  }
  std::memcpy(m.grown.data() + m.at, data, n);
  m.at += n;
  return count;
}

toff_t on_seek(thandle_t handle, toff_t to, int whence) {
  Memory& m = memory_of(handle);
  const std::size_t size = m.writing ? m.grown.size() : m.size;
  m.at = static_cast<std::size_t>(to) + (whence == SEEK_CUR ? m.at : whence == SEEK_END ? size : 0);
  return m.at;
}

int on_close(thandle_t) { return 0; }
toff_t on_size(thandle_t handle) { return memory_of(handle).writing ? memory_of(handle).grown.size() : memory_of(handle).size; }

int on_error(TIFF*, void* user, const char*, const char* format, va_list arguments) {
  Memory& m = *static_cast<Memory*>(user);
  if (m.message[0] == '\0') std::vsnprintf(m.message, sizeof m.message, format, arguments);  // the first is the cause
  return 1;
}
int on_warning(TIFF*, void*, const char*, const char*, va_list) { return 1; }

struct Close {
  void operator()(TIFF* t) const { TIFFClose(t); }
};
using Tiff = std::unique_ptr<TIFF, Close>;

Tiff open(Memory& memory, const char* mode, std::int64_t most_bytes) {
  struct Free {
    void operator()(TIFFOpenOptions* o) const { TIFFOpenOptionsFree(o); }
  };
  const std::unique_ptr<TIFFOpenOptions, Free> options(TIFFOpenOptionsAlloc());
  if (!options) throw std::bad_alloc();
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), static_cast<tmsize_t>(most_bytes));
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), on_error, &memory);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), on_warning, &memory);
  return Tiff(
      TIFFClientOpenExt("", mode, &memory, on_read, on_write, on_seek, on_close, on_size, nullptr, nullptr, options.get()));
}

template <class T>
T field(TIFF* t, std::uint32_t tag, T otherwise) {
  T value = otherwise;
  return TIFFGetFieldDefaulted(t, tag, &value) != 0 ? value : otherwise;
}

struct Picture {
  std::uint32_t width = 0, height = 0;
  std::uint16_t bits = 1, samples = 1, photometric = 0, planar = 1, compression = 1, format = 1;
  int colors = 1;  // samples that are colours
  bool alpha = false;
  bool general = false;  // libtiff's own conversion to RGBA does it
  bool numbers = false;  // of other sizes than 1, 2, 4, 8 and 16 bits, with a sign, or floating
  double white = 1;      // of floating numbers
  std::uint16_t* map[3] = {};
  bool wide_map = false;  // 16 bits

  bool inks() const { return photometric == PHOTOMETRIC_SEPARATED && !general; }
  bool grey() const { return photometric <= PHOTOMETRIC_MINISBLACK && !general; }
  int channels() const { return general || inks() || alpha ? 4 : 3; }
};

void read_palette(TIFF* t, Picture& p) {
  if (TIFFGetField(t, TIFFTAG_COLORMAP, &p.map[0], &p.map[1], &p.map[2]) == 0) {
    p.general = true;
    return;
  }
  for (const std::uint16_t* map : p.map) {
    for (int i = 0; i < 1 << p.bits; ++i) p.wide_map = p.wide_map || map[i] > 255;
  }
}

bool is_number(const Picture& p) {
  if (p.format == SAMPLEFORMAT_IEEEFP) return p.bits == 16 || p.bits == 24 || p.bits == 32 || p.bits == 64;
  return (p.format == SAMPLEFORMAT_UINT || p.format == SAMPLEFORMAT_VOID || p.format == SAMPLEFORMAT_INT) && p.bits >= 1 &&
         p.bits <= 32;
}

Picture describe(TIFF* t) {
  Picture p;
  p.width = field<std::uint32_t>(t, TIFFTAG_IMAGEWIDTH, 0);
  p.height = field<std::uint32_t>(t, TIFFTAG_IMAGELENGTH, 0);
  p.bits = field<std::uint16_t>(t, TIFFTAG_BITSPERSAMPLE, 1);
  p.samples = field<std::uint16_t>(t, TIFFTAG_SAMPLESPERPIXEL, 1);
  p.planar = field<std::uint16_t>(t, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
  p.compression = field<std::uint16_t>(t, TIFFTAG_COMPRESSION, COMPRESSION_NONE);
  p.format = field<std::uint16_t>(t, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_UINT);
  if (TIFFGetField(t, TIFFTAG_PHOTOMETRIC, &p.photometric) == 0)
    p.photometric = p.samples >= 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK;
  if (p.photometric == PHOTOMETRIC_YCBCR && p.compression == COMPRESSION_JPEG && p.planar == PLANARCONFIG_CONTIG) {
    TIFFSetField(t, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    p.photometric = PHOTOMETRIC_RGB;
  }
  const bool small = p.bits == 1 || p.bits == 2 || p.bits == 4;
  const bool whole = p.bits == 8 || p.bits == 16;
  switch (p.photometric) {
    case PHOTOMETRIC_MINISWHITE:
    case PHOTOMETRIC_MINISBLACK: p.colors = 1, p.numbers = !whole && !(small && p.samples == 1); break;
    case PHOTOMETRIC_RGB: p.colors = 3, p.numbers = !whole; break;
    case PHOTOMETRIC_PALETTE: p.colors = 1, p.general = p.bits > 8 || !(whole || (small && p.samples == 1)); break;
    case PHOTOMETRIC_SEPARATED:
      p.colors = 4;
      p.general = !whole || field<std::uint16_t>(t, TIFFTAG_INKSET, INKSET_CMYK) != INKSET_CMYK;
      break;
    default: p.general = true;
  }
  const bool plain = p.photometric <= PHOTOMETRIC_RGB && !p.general;
  const bool unsigned_numbers = p.format == SAMPLEFORMAT_UINT || p.format == SAMPLEFORMAT_VOID;
  p.numbers = plain && (p.numbers || !unsigned_numbers);
  if (p.samples < p.colors || p.samples > 16 || !(unsigned_numbers || plain) || (p.numbers && !is_number(p))) {
    p.general = true;
    p.numbers = false;
  }
  if (!p.general && p.photometric == PHOTOMETRIC_PALETTE) read_palette(t, p);
  std::uint16_t extra = 0;
  std::uint16_t* kinds = nullptr;
  TIFFGetFieldDefaulted(t, TIFFTAG_EXTRASAMPLES, &extra, &kinds);
  p.alpha = p.colors == 3 && p.samples > 3 && extra > 0 && kinds[0] != EXTRASAMPLE_UNSPECIFIED;
  return p;
}

// Bits [at, at + count) of a row, the first the highest; count is 1 to 32.
std::uint32_t bits_of(const unsigned char* row, std::size_t at, unsigned count) {
  std::uint64_t value = 0;
  const std::size_t last = (at + count - 1) / 8;
  for (std::size_t i = at / 8; i <= last; ++i) value = value << 8 | row[i];
  return static_cast<std::uint32_t>(value >> (last * 8 + 8 - at - count) & ((std::uint64_t{1} << count) - 1));
}

// libtiff has put numbers of whole bytes into this machine's order.
template <class T>
T whole_number(const unsigned char* row, std::size_t i) {
  T value{};
  std::memcpy(&value, row + i * sizeof value, sizeof value);
  return value;
}

// Floats of 16 bits (5 of exponent) or 24 (7, by Adobe's technical note 3).
double small_float(std::uint32_t bits, int fraction_bits, int exponent_bits) {
  const std::uint32_t exponent = bits >> fraction_bits & ((1U << exponent_bits) - 1);
  const double fraction = std::ldexp(bits & ((1U << fraction_bits) - 1), -fraction_bits);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = (bits >> (fraction_bits + exponent_bits)) != 0 ? -1 : 1;
  if (exponent == (1U << exponent_bits) - 1) return fraction > 0 ? std::numeric_limits<double>::quiet_NaN() : sign * HUGE_VAL;
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, static_cast<int>(exponent) - bias));
}

std::uint32_t number_of_24_bits(const unsigned char* row, std::size_t i) {
  const unsigned char* b = row + i * 3;
  const std::uint32_t first = b[0], last = b[2];
  const bool little = std::endian::native == std::endian::little;
  return std::uint32_t{b[1]} << 8 | (little ? first | last << 16 : last | first << 16);
}

double floating(const Picture& p, const unsigned char* row, std::size_t i) {
  if (p.bits == 64) return whole_number<double>(row, i);
  if (p.bits == 32) return static_cast<double>(whole_number<float>(row, i));
  return p.bits == 24 ? small_float(number_of_24_bits(row, i), 16, 7) : small_float(whole_number<std::uint16_t>(row, i), 10, 5);
}

std::uint32_t whole(const Picture& p, const unsigned char* row, std::size_t i) {
  switch (p.bits) {
    case 16: return whole_number<std::uint16_t>(row, i);
    case 24: return number_of_24_bits(row, i);
    case 32: return whole_number<std::uint32_t>(row, i);
    default: return bits_of(row, i * p.bits, p.bits);
  }
}

// A sample as 0 to 255, for any kind of number.
unsigned number_in_byte(const Picture& p, const unsigned char* row, std::size_t i) {
  if (p.format == SAMPLEFORMAT_IEEEFP) {
    const double value = floating(p, row, i) / p.white;
    return value > 0 ? static_cast<unsigned>(std::min(value, 1.0) * 255 + 0.5) : 0;  // not a number: 0
  }
  std::uint64_t value = whole(p, row, i), most = (std::uint64_t{1} << p.bits) - 1;
  if (p.format == SAMPLEFORMAT_INT) {
    most >>= 1;
    if (value > most) return 0;  // below zero
  }
  return most <= 255 ? static_cast<unsigned>(value * 255 / std::max<std::uint64_t>(most, 1))
                     : static_cast<unsigned>(value * 256 / (most + 1));
}

unsigned sample(const Picture& p, const unsigned char* row, std::size_t i) {
  if (p.numbers) return number_in_byte(p, row, i);
  if (p.bits == 8) return row[i];
  if (p.bits == 16) return static_cast<unsigned>(whole_number<std::uint16_t>(row, i) >> 8);
  return bits_of(row, i * p.bits, p.bits);
}

// Converts `count` pixels. `plane` < 0: the row has all samples of each pixel.
void put_pixels(const Picture& p, const unsigned char* row, std::size_t count, int plane, unsigned char* out) {
  const std::size_t channels = static_cast<std::size_t>(p.channels());
  const std::size_t step = plane < 0 ? p.samples : 1;
  if (plane < 0 && p.bits == 8 && !p.numbers && p.colors >= 3 && step == channels) {
    std::memcpy(out, row, count * channels);
    return;
  }
  const unsigned most = p.bits >= 8 || p.numbers ? 255U : (1U << p.bits) - 1;
  for (std::size_t x = 0; x < count; ++x, out += channels) {
    if (p.colors >= 3) {
      for (std::size_t c = 0; c < channels; ++c) {
        if (plane < 0 || static_cast<std::size_t>(plane) == c) {
          out[c] = static_cast<unsigned char>(sample(p, row, x * step + (plane < 0 ? c : 0)));
        }
      }
      continue;
    }
    const unsigned value = sample(p, row, x * step);
    for (int c = 0; c < 3; ++c) {
      if (p.photometric == PHOTOMETRIC_PALETTE) {
        out[c] = static_cast<unsigned char>(p.map[c][value] >> (p.wide_map ? 8 : 0));
      } else {
        const unsigned grey = value * 255 / most;
        out[c] = static_cast<unsigned char>(p.photometric == PHOTOMETRIC_MINISWHITE ? 255 - grey : grey);
      }
    }
  }
}

// Planes that become channels; those beyond them are left alone.
int planes_of(const Picture& p) { return p.planar == PLANARCONFIG_SEPARATE ? (p.colors == 1 ? 1 : p.channels()) : 1; }

// Rows, or parts of them: put(row, pixels, plane, index of the first pixel in the picture); plane < 0: all samples of each pixel.
template <class Put>
bool read_strips(TIFF* t, const Picture& p, const Put& put) {
  const bool apart = p.planar == PLANARCONFIG_SEPARATE && p.samples > 1;
  const tmsize_t line = TIFFScanlineSize(t);
  const std::size_t least = (static_cast<std::size_t>(p.width) * (apart ? 1 : p.samples) * p.bits + 7) / 8;
  if (line <= 0 || static_cast<std::size_t>(line) < least) return false;
  std::vector<unsigned char> row(static_cast<std::size_t>(line));
  for (int plane = 0; plane < (apart ? planes_of(p) : 1); ++plane) {
    for (std::uint32_t y = 0; y < p.height; ++y) {
      if (TIFFReadScanline(t, row.data(), y, static_cast<std::uint16_t>(plane)) < 0) return false;
      put(row.data(), p.width, apart ? plane : -1, static_cast<std::size_t>(y) * p.width);
    }
  }
  return true;
}

template <class Put>
bool read_tiles(TIFF* t, const Picture& p, const Put& put) {
  const bool apart = p.planar == PLANARCONFIG_SEPARATE && p.samples > 1;
  const auto wide = field<std::uint32_t>(t, TIFFTAG_TILEWIDTH, 0), high = field<std::uint32_t>(t, TIFFTAG_TILELENGTH, 0);
  const tmsize_t size = TIFFTileSize(t), line = TIFFTileRowSize(t);
  if (wide == 0 || high == 0 || size <= 0 || line <= 0 || size > tmsize_t{1} << 28 || static_cast<tmsize_t>(high) > size / line)
    return false;
  if (static_cast<std::size_t>(line) < (static_cast<std::size_t>(wide) * (apart ? 1 : p.samples) * p.bits + 7) / 8) return false;
  std::vector<unsigned char> tile(static_cast<std::size_t>(size));
  for (int plane = 0; plane < (apart ? planes_of(p) : 1); ++plane) {
    for (std::uint32_t y = 0; y < p.height; y += std::min(high, p.height - y)) {
      for (std::uint32_t x = 0; x < p.width; x += std::min(wide, p.width - x)) {
        if (TIFFReadTile(t, tile.data(), x, y, 0, static_cast<std::uint16_t>(plane)) < 0) return false;
        for (std::uint32_t k = 0; k < std::min(high, p.height - y); ++k) {
          put(tile.data() + static_cast<std::size_t>(k) * static_cast<std::size_t>(line), std::min(wide, p.width - x),
              apart ? plane : -1, static_cast<std::size_t>(y + k) * p.width + x);
        }
      }
    }
  }
  return true;
}

template <class Put>
bool read_rows(TIFF* t, const Picture& p, const Put& put) {
  return TIFFIsTiled(t) != 0 ? read_tiles(t, p, put) : read_strips(t, p, put);
}

// The number that is white for floating-point samples: 1, unless most samples are larger. Then they have the range of 8 or 16
// bits, or their own.
bool find_white(TIFF* t, Picture& p) {
  double sum = 0, most = 0, count = 0;
  const bool good = read_rows(t, p, [&](const unsigned char* row, std::size_t pixels, int plane, std::size_t) {
    for (std::size_t i = 0; i < pixels * (plane < 0 ? p.samples : 1U); ++i) {
      const double value = floating(p, row, i);
      if (!std::isfinite(value)) continue;
      sum += value;
      most = std::max(most, value);
      ++count;
    }
  });
  if (sum > count) p.white = most <= 255 ? 255 : most <= 65535 ? 65535 : most;
  return good;
}

bool read_samples(TIFF* t, Picture& p, unsigned char* out) {
  if (p.numbers && p.format == SAMPLEFORMAT_IEEEFP && !find_white(t, p)) return false;
  const auto channels = static_cast<std::size_t>(p.channels());
  return read_rows(t, p, [&](const unsigned char* row, std::size_t pixels, int plane, std::size_t first) {
    put_pixels(p, row, pixels, plane, out + first * channels);
  });
}

bool read_general(TIFF* t, const Picture& p, unsigned char* out, Memory& memory) {
  TIFFRGBAImage image;
  char why[1024] = "";
  if (TIFFRGBAImageBegin(&image, t, 1, why) == 0) {
    std::snprintf(memory.message, sizeof memory.message, "%.180s", why);
    return false;
  }
  image.req_orientation = image.orientation;  // the caller turns it
  std::vector<std::uint32_t> pixels(static_cast<std::size_t>(p.width) * p.height);
  const bool good = TIFFRGBAImageGet(&image, pixels.data(), p.width, p.height) != 0;
  TIFFRGBAImageEnd(&image);
  for (std::size_t i = 0; good && i < pixels.size(); ++i, out += 4) {
    out[0] = static_cast<unsigned char>(TIFFGetR(pixels[i]));
    out[1] = static_cast<unsigned char>(TIFFGetG(pixels[i]));
    out[2] = static_cast<unsigned char>(TIFFGetB(pixels[i]));
    out[3] = static_cast<unsigned char>(TIFFGetA(pixels[i]));
  }
  return good;
}

double dpi_of(TIFF* t) {
  float x = 0;
  if (TIFFGetField(t, TIFFTAG_XRESOLUTION, &x) == 0 || !(x > 0)) return 0;
  const auto unit = field<std::uint16_t>(t, TIFFTAG_RESOLUTIONUNIT, RESUNIT_INCH);
  return unit == RESUNIT_CENTIMETER ? x * 2.54 : unit == RESUNIT_INCH ? x : 0;
}

// Versions of libtiff disagree: bytes, or numbers of 32 bits.
bool iptc_in_words(TIFF* t) {
  const TIFFField* f = TIFFFindField(t, TIFFTAG_RICHTIFFIPTC, TIFF_ANY);
  return f != nullptr && TIFFFieldDataType(f) == TIFF_LONG;
}

bool send_blocks(TIFF* t, const ModuleSink& sink) {
  std::uint32_t size = 0;
  void* data = nullptr;
  if (TIFFGetField(t, TIFFTAG_ICCPROFILE, &size, &data) != 0 && !sink.block(sink.context, Block::icc, data, size)) return false;
  if (TIFFGetField(t, TIFFTAG_XMLPACKET, &size, &data) != 0 && !sink.block(sink.context, Block::xmp, data, size)) return false;
  if (TIFFGetField(t, TIFFTAG_RICHTIFFIPTC, &size, &data) == 0) return true;
  if (!iptc_in_words(t)) return sink.block(sink.context, Block::iptc, data, size);
  std::vector<std::uint32_t> words(size);
  if (size > 0) std::memcpy(words.data(), data, size * std::size_t{4});
  // libtiff has put them into this machine's order: records begin with 0x1C.
  if (size > 0 && *static_cast<const unsigned char*>(data) != 0x1C)
    TIFFSwabArrayOfLong(words.data(), static_cast<tmsize_t>(size));
  return sink.block(sink.context, Block::iptc, words.data(), size * std::size_t{4});
}

Outcome read(const ModuleRead* request, const ModuleSink* sink, ModuleText error) {
  return guarded(error, [&] {
    Memory memory;
    memory.data = static_cast<const unsigned char*>(request->data);
    memory.size = request->size;
    const std::int64_t most = std::min<std::int64_t>(request->most_pixels, std::int64_t{1} << 30);
    const Tiff t = open(memory, "rm", (std::int64_t{64} << 20) + most * 8);
    const auto damaged = [&] {
      return say(error, Outcome::damaged, memory.message[0] != '\0' ? memory.message : "its directory is invalid");
    };
    if (!t) return damaged();
    Picture p = describe(t.get());
    std::uint32_t profile = 0;
    void* data = nullptr;
    const bool icc = TIFFGetField(t.get(), TIFFTAG_ICCPROFILE, &profile, &data) != 0;
    int orientation = field<std::uint16_t>(t.get(), TIFFTAG_ORIENTATION, 1);
    if (orientation < 1 || orientation > 8) orientation = 1;
    const ModuleFacts facts{p.width, p.height,        orientation, p.channels() == 4 && !p.inks(), p.inks(), p.grey(),
                            icc,     dpi_of(t.get()), false};
    if (!sink->facts(sink->context, &facts)) return Outcome::stopped;
    if (request->header) return Outcome::ok;
    if (char why[1024] = ""; p.general && TIFFRGBAImageOK(t.get(), why) == 0) return say(error, Outcome::unsupported, why);
    if (request->metadata && !send_blocks(t.get(), *sink)) return Outcome::stopped;
    unsigned char* out = sink->pixels(sink->context, static_cast<int>(p.width), static_cast<int>(p.height), p.channels());
    if (out == nullptr) return Outcome::stopped;
    const bool good = p.general ? read_general(t.get(), p, out, memory) : read_samples(t.get(), p, out);
    return good ? Outcome::ok : damaged();
  });
}

bool set_fields(TIFF* t, const ModuleWrite& w) {
  bool good = TIFFSetField(t, TIFFTAG_IMAGEWIDTH, static_cast<std::uint32_t>(w.width)) != 0;
  const auto set = [&](std::uint32_t tag, auto... values) { good = TIFFSetField(t, tag, values...) != 0 && good; };
  set(TIFFTAG_IMAGELENGTH, static_cast<std::uint32_t>(w.height));
  set(TIFFTAG_BITSPERSAMPLE, 8);
  set(TIFFTAG_SAMPLESPERPIXEL, w.channels);
  set(TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
  set(TIFFTAG_PHOTOMETRIC, w.channels == 1 ? PHOTOMETRIC_MINISBLACK : PHOTOMETRIC_RGB);
  set(TIFFTAG_COMPRESSION, COMPRESSION_ADOBE_DEFLATE);
  set(TIFFTAG_PREDICTOR, PREDICTOR_HORIZONTAL);
  set(TIFFTAG_ZIPQUALITY, 1);
  set(TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);
  set(TIFFTAG_ROWSPERSTRIP, TIFFDefaultStripSize(t, 0));
  if (w.channels == 4) {
    const std::uint16_t kind[] = {EXTRASAMPLE_UNASSALPHA};
    set(TIFFTAG_EXTRASAMPLES, 1, kind);
  }
  if (w.dpi > 0) {
    set(TIFFTAG_XRESOLUTION, w.dpi);
    set(TIFFTAG_YRESOLUTION, w.dpi);
    set(TIFFTAG_RESOLUTIONUNIT, RESUNIT_INCH);
  }
  for (std::size_t i = 0; i < w.tag_count; ++i) set(w.tags[i], w.texts[i]);
  if (w.icc.size > 0) set(TIFFTAG_ICCPROFILE, static_cast<std::uint32_t>(w.icc.size), w.icc.data);
  if (w.xmp.size > 0) set(TIFFTAG_XMLPACKET, static_cast<std::uint32_t>(w.xmp.size), w.xmp.data);
  if (w.iptc.size > 0 && !iptc_in_words(t)) {
    set(TIFFTAG_RICHTIFFIPTC, static_cast<std::uint32_t>(w.iptc.size), w.iptc.data);
  } else if (w.iptc.size > 0) {
    std::vector<std::uint32_t> words((w.iptc.size + 3) / 4);
    std::memcpy(words.data(), w.iptc.data, w.iptc.size);
    if (TIFFIsByteSwapped(t) != 0) TIFFSwabArrayOfLong(words.data(), static_cast<tmsize_t>(words.size()));
    set(TIFFTAG_RICHTIFFIPTC, static_cast<std::uint32_t>(words.size()), words.data());
  }
  // Any place but none: the caller appends what they point to.
  if (w.exif_directory) set(TIFFTAG_EXIFIFD, std::uint64_t{8});
  if (w.gps_directory) set(TIFFTAG_GPSIFD, std::uint64_t{8});
  return good;
}

Outcome write(const ModuleWrite* w, ModuleText error) {
  return guarded(error, [&] {
    Memory memory;
    memory.writing = true;
    const auto failed = [&] {
      return say(error, Outcome::failed, memory.message[0] != '\0' ? memory.message : "libtiff gives no reason");
    };
    Tiff t = open(memory, w->big_endian ? "wb" : "wl", 0);
    if (!t || !set_fields(t.get(), *w)) return failed();
    const std::size_t stride = static_cast<std::size_t>(w->width) * static_cast<std::size_t>(w->channels);
    std::vector<unsigned char> row(stride);  // libtiff changes what it is given
    for (int y = 0; y < w->height; ++y) {
      std::memcpy(row.data(), w->pixels + static_cast<std::size_t>(y) * stride, stride);
      if (TIFFWriteScanline(t.get(), row.data(), static_cast<std::uint32_t>(y), 0) < 0) return failed();
    }
    if (TIFFWriteDirectory(t.get()) == 0) return failed();
    t.reset();
    if (memory.message[0] != '\0') return failed();
    return w->write(w->context, memory.grown.data(), memory.grown.size()) ? Outcome::ok : Outcome::stopped;
  });
}

const PictureModule kModule{module_head<PictureModule>(SDX_VERSION), &read, &write};

}  // namespace
}  // namespace sdx::media

extern "C" __attribute__((visibility("default"))) const sdx::ModuleHead* sdx_tiff_module() { return &sdx::media::kModule.head; }
