#pragma once
// The tables of functions, with C types, of libsdx_tiff.so, libsdx_heif.so, libsdx_jxl.so, libsdx_raw.so, libsdx_color.so and
// libsdx_sndfile.so. No exception crosses them in either direction.

#include <cstddef>
#include <cstdint>

#include "base/module/module.h"

namespace sdx::media {

enum class Outcome : int {
  ok,
  stopped,      // a function of the caller's said so
  damaged,      // the bytes; the message says why
  unsupported,  // well-formed, as far as can be told
  failed        // memory, the library
};

struct ModuleText {
  char* text;  // for a message that ends with a zero
  std::size_t size;
};

// Before pixels are asked for.
struct ModuleFacts {
  std::int64_t width, height;
  int orientation;  // 1 to 8, still to be applied
  bool alpha, inks, grey, icc;
  double dpi;
  bool animation;  // of which the first picture is read
};

enum class Block : int { exif, xmp, icc, iptc, jpeg };  // jpeg: a preview, to be decoded in place of pixels

struct ModuleSink {
  void* context;
  bool (*facts)(void* context, const ModuleFacts* facts);  // false: stop
  bool (*block)(void* context, Block kind, const void* data, std::size_t size);
  // Room for height * width * channels bytes, rows without padding; null: stop. Four channels are red, green, blue, opacity, or
  // inks where the facts say so, 255 for full ink.
  unsigned char* (*pixels)(void* context, int width, int height, int channels);
};

struct ModuleRead {
  const void* data;
  std::size_t size;
  std::int64_t most_pixels;
  int at_least;   // 0: all
  bool header;    // facts alone
  bool metadata;  // blocks, too
};

struct ModuleBytes {
  const void* data;
  std::size_t size;
};

struct ModuleWrite {
  const unsigned char* pixels;  // rows without padding
  int width, height, channels;  // 1, 3, 4
  int quality;                  // 1 to 100
  double dpi;                   // 0: not said
  ModuleBytes exif, xmp, icc, iptc;
  bool big_endian;                     // TIFF
  bool exif_directory, gps_directory;  // TIFF: room for pointers to them
  // TIFF: text tags of the main directory.
  const unsigned* tags;
  const char* const* texts;
  std::size_t tag_count;

  void* context;
  bool (*write)(void* context, const void* data, std::size_t size);  // the file, in pieces or at once; false: stop
};

struct PictureModule {
  ModuleHead head;
  Outcome (*read)(const ModuleRead* request, const ModuleSink* sink, ModuleText error);
  Outcome (*write)(const ModuleWrite* request, ModuleText error);  // null: this format is not written
};

enum class Colors : int { grey, rgb, inks };

struct ModuleTransform {
  const void* icc;
  std::size_t icc_size;
  Colors colors;            // of the pixels; grey: the first of the channels counts
  const unsigned char* in;  // rows without padding
  unsigned char* out;       // may be `in`: of the same size, or three channels from four
  int width, height;
  int in_channels, out_channels;  // the fourth, of rgb, is copied
};

struct ColorModule {
  ModuleHead head;
  // unsupported: the profile is for other colours.
  Outcome (*to_srgb)(const ModuleTransform* request, ModuleText error);
};

struct ModuleSoundFacts {
  std::int64_t frames;  // samples of each channel, as far as the file says; INT64_MAX, or 0: it does not
  int rate, channels;
};

struct ModuleSoundSink {
  void* context;
  bool (*facts)(void* context, const ModuleSoundFacts* facts);             // first; false: stop
  bool (*frames)(void* context, const float* samples, std::size_t count);  // one after another, channels side by side
};

struct SoundModule {
  static constexpr ModuleName kModule{"sardonyx/libsdx_sndfile.so", "sdx_sndfile_module", "SDX_SNDFILE_LIB",
                                      "sound other than plain WAV", "libsndfile1"};

  ModuleHead head;
  Outcome (*read)(const void* data, std::size_t size, const ModuleSoundSink* sink, ModuleText error);
};

}  // namespace sdx::media
