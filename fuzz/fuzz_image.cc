// Pictures: any format by its content, whole and in part, with metadata that are written again.

#include <cstddef>
#include <cstdint>
#include <span>
#include <sstream>
#include <string>

#include <sdx/error.hpp>
#include <sdx/image.hpp>

#include "media/metadata/exif.h"
#include "media/metadata/iptc.h"
#include "media/metadata/xmp.h"

namespace media = sdx::media;

namespace {

void metadata(const std::string& text) {
  const std::string upright = media::upright_exif(text, 640, 480, 72);
  if (media::read_exif(upright).orientation != 1) __builtin_trap();
  std::string tiff = text;
  media::append_exif(tiff, text);
  media::exif_of_tiff(text);
  media::upright_xmp(text);
  media::upright_exif(text, 640, 480, 0, true);
  // What is taken out is gone, and nothing else changes: a second time finds nothing.
  const std::string part = media::upright_xmp(text, true);
  if (media::upright_xmp(part, true) != part) __builtin_trap();
  media::iptc_of(text);
}

void written_again(const media::DecodedImage& picture) {
  for (const media::FileFormat format :
       {media::FileFormat::jpeg, media::FileFormat::png, media::FileFormat::webp, media::FileFormat::tiff}) {
    media::EncodeOptions options;
    options.format = format;
    options.metadata = picture.metadata;
    media::encode(media::Image::blank(8, 8), options);
  }
}

template <class F>
void attempt(F&& f) {
  try {
    f();
  } catch (const sdx::Error& e) {
    if (e.code() == sdx::ErrorCode::internal) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  media::DecodeLimits limits;
  limits.pixels = 300'000;
  attempt([&] { media::probe_image(bytes); });
  attempt([&] {
    media::DecodeOptions options{.limits = limits, .to_srgb = true};
    written_again(media::decode_picture(bytes, options));
  });
  attempt([&] {
    media::DecodeOptions options{.limits = limits, .at_least = 20, .region = media::Rectangle{5, 9, 100, 50}};
    media::decode_picture(bytes, options);
  });
  const std::string text(reinterpret_cast<const char*>(data), size);
  attempt([&] { metadata(text); });
  attempt([&] {
    std::istringstream in(text);
    media::FrameReader frames(in, {.decode = limits, .bytes = 100'000});
    while (frames.next()) {
    }
  });
  return 0;
}
