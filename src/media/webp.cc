#include <webp/decode.h>
#include <webp/encode.h>
#include <webp/mux.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "media/codecs.h"
#include "media/metadata/exif.h"

namespace sdx::media {
namespace {

constexpr int kMostSide = 16383;

struct MuxDelete {
  void operator()(WebPMux* mux) const { WebPMuxDelete(mux); }
};
using Mux = std::unique_ptr<WebPMux, MuxDelete>;

WebPData data_of(std::span<const std::byte> bytes) { return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}; }

std::string chunk(const Mux& mux, const char* name) {
  WebPData data{};
  if (mux == nullptr || WebPMuxGetChunk(mux.get(), name, &data) != WEBP_MUX_OK) return "";
  return {reinterpret_cast<const char*>(data.bytes), data.size};
}

// Some writers begin the chunk as JPEG's segments begin.
std::string exif_of(const Mux& mux) {
  std::string exif = chunk(mux, "EXIF");
  if (exif.starts_with("Exif")) exif.erase(0, std::min<std::size_t>(6, exif.size()));
  return exif;
}

Mux open_mux(std::span<const std::byte> bytes) {
  const WebPData data = data_of(bytes);
  return Mux(WebPMuxCreate(&data, 0));  // null: none but pixels, or damaged
}

WebPBitstreamFeatures features_of(std::span<const std::byte> bytes) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), &features) != VP8_STATUS_OK) {
    fail(ErrorCode::invalid_argument, "the WebP image is damaged or truncated");
  }
  return features;
}

int append(const std::uint8_t* data, std::size_t size, const WebPPicture* picture) {
  try {
    static_cast<std::string*>(picture->custom_ptr)->append(reinterpret_cast<const char*>(data), size);
    return 1;
  } catch (const std::exception&) {
    return 0;
  }
}

struct Picture : WebPPicture {
  Picture() {
    if (WebPPictureInit(this) == 0) fail(ErrorCode::internal, "libwebp is of another version than its headers");
  }
  ~Picture() { WebPPictureFree(this); }
  Picture(const Picture&) = delete;
  Picture& operator=(const Picture&) = delete;
};

std::string pixels_of(const Image& image, int quality) {
  WebPConfig config;
  // A lossless file of quality 75 takes a third of the time of one at 100, and is 1 to 2 % larger.
  if (WebPConfigPreset(&config, WEBP_PRESET_DEFAULT, static_cast<float>(quality == 100 ? 75 : quality)) == 0)
    fail(ErrorCode::internal, "libwebp is of another version than its headers");
  config.lossless = quality == 100 ? 1 : 0;
  config.exact = config.lossless;  // the colour of transparent pixels, too
  std::string out;
  Picture picture;
  picture.use_argb = config.lossless;
  picture.width = image.width;
  picture.height = image.height;
  picture.writer = append;
  picture.custom_ptr = &out;
  const auto stride = static_cast<int>(image.stride());
  int imported = 0;
  if (image.channels == 1) {
    Image three = Image::blank(image.width, image.height, 3);
    for (std::size_t i = 0; i < image.pixels.size(); ++i) std::fill_n(&three.pixels[i * 3], 3, image.pixels[i]);
    imported = WebPPictureImportRGB(&picture, three.pixels.data(), stride * 3);
  } else {
    imported = image.channels == 4 ? WebPPictureImportRGBA(&picture, image.pixels.data(), stride)
                                   : WebPPictureImportRGB(&picture, image.pixels.data(), stride);
  }
  if (imported == 0 || WebPEncode(&config, &picture) == 0) {
    fail(ErrorCode::runtime_failure, "cannot write the WebP: libwebp's error {}", static_cast<int>(picture.error_code));
  }
  return out;
}

// The picture to decode: the file's, or the first one of an animation and its place on the canvas.
struct First {
  WebPData data{};
  WebPData copied{};  // what `data` refers to, of an animation
  int left = 0, top = 0, width = 0, height = 0;
  int canvas_width = 0, canvas_height = 0;
  bool alpha = false;

  First() = default;
  ~First() { WebPDataClear(&copied); }
  First(const First&) = delete;
  First& operator=(const First&) = delete;
  bool covers() const { return left == 0 && top == 0 && width == canvas_width && height == canvas_height; }
};

[[noreturn]] void damaged() { fail(ErrorCode::invalid_argument, "the WebP image is damaged or truncated"); }

void find_first(std::span<const std::byte> bytes, const WebPBitstreamFeatures& features, const Mux& mux, First& out) {
  out.canvas_width = features.width;
  out.canvas_height = features.height;
  if (features.has_animation == 0) {
    out.data = data_of(bytes);
    out.width = features.width;
    out.height = features.height;
    out.alpha = features.has_alpha != 0;
    return;
  }
  WebPMuxFrameInfo frame{};
  if (mux == nullptr || WebPMuxGetFrame(mux.get(), 1, &frame) != WEBP_MUX_OK) damaged();
  out.data = out.copied = frame.bitstream;
  WebPBitstreamFeatures own;
  if (WebPGetFeatures(out.data.bytes, out.data.size, &own) != VP8_STATUS_OK) damaged();
  out.left = frame.x_offset;
  out.top = frame.y_offset;
  out.width = own.width;
  out.height = own.height;
  if (out.left < 0 || out.top < 0 || out.left > out.canvas_width - out.width || out.top > out.canvas_height - out.height)
    damaged();
  out.alpha = own.has_alpha != 0 || !out.covers();
}

void decode_into(const First& first, Image& image) {
  const auto decode = image.channels == 4 ? WebPDecodeRGBAInto : WebPDecodeRGBInto;
  const std::size_t offset = static_cast<std::size_t>(first.left) * static_cast<std::size_t>(image.channels);
  std::uint8_t* out = image.row(first.top) + offset;
  const auto room = static_cast<std::size_t>(image.pixels.data() + image.pixels.size() - out);
  if (decode(first.data.bytes, first.data.size, out, room, static_cast<int>(image.stride())) == nullptr) damaged();
}

}  // namespace

Stored decode_webp(std::span<const std::byte> bytes, const Request& request) {
  const WebPBitstreamFeatures features = features_of(bytes);
  check_size(features.width, features.height, request.limits);
  const Mux mux = open_mux(bytes);
  First first;
  find_first(bytes, features, mux, first);
  Stored out;
  out.width = features.width;
  out.height = features.height;
  out.image = Image::blank(features.width, features.height, first.alpha ? 4 : 3);
  decode_into(first, out.image);
  const std::string exif = exif_of(mux);
  const ExifFacts facts = read_exif(exif);
  out.orientation = facts.orientation;
  if (request.metadata) {
    out.metadata.exif = exif;
    out.metadata.xmp = chunk(mux, "XMP ");
    out.metadata.icc = chunk(mux, "ICCP");
    out.metadata.dpi = facts.dpi;
  }
  return out;
}

ImageInfo probe_webp(std::span<const std::byte> bytes) {
  const WebPBitstreamFeatures features = features_of(bytes);
  const Mux mux = open_mux(bytes);
  First first;
  find_first(bytes, features, mux, first);
  ImageInfo info;
  info.stored_width = features.width;
  info.stored_height = features.height;
  info.alpha = first.alpha;
  info.animation = features.has_animation != 0;
  info.orientation = read_exif(exif_of(mux)).orientation;
  info.icc = !chunk(mux, "ICCP").empty();
  return info;
}

std::string write_webp(const Image& image, const Writing& writing) {
  if (image.width > kMostSide || image.height > kMostSide) {
    fail(ErrorCode::invalid_argument, "a WebP image has at most {} pixels a side, received {}x{}", kMostSide, image.width,
         image.height);
  }
  std::string pixels = pixels_of(image, writing.quality);
  const Metadata& m = writing.metadata;
  if (m.exif.empty() && m.xmp.empty() && m.icc.empty()) return pixels;
  const Mux mux(WebPMuxNew());
  const WebPData image_data{reinterpret_cast<const std::uint8_t*>(pixels.data()), pixels.size()};
  bool good = mux != nullptr && WebPMuxSetImage(mux.get(), &image_data, 0) == WEBP_MUX_OK;
  const auto set = [&](const char* name, const std::string& bytes) {
    const WebPData data{reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
    if (good && !bytes.empty()) good = WebPMuxSetChunk(mux.get(), name, &data, 0) == WEBP_MUX_OK;
  };
  set("ICCP", m.icc);
  set("EXIF", m.exif);
  set("XMP ", m.xmp);
  WebPData whole{};
  if (!good || WebPMuxAssemble(mux.get(), &whole) != WEBP_MUX_OK) {
    fail(ErrorCode::runtime_failure, "cannot write the WebP: libwebpmux refuses its metadata");
  }
  std::string out(reinterpret_cast<const char*>(whole.bytes), whole.size);
  WebPDataClear(&whole);
  return out;
}

}  // namespace sdx::media
