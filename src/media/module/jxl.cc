// libsdx_jxl.so: JPEG XL by libjxl. Of animations the first picture.

#include <jxl/decode.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "media/module/support.h"

namespace sdx::media {
namespace {

constexpr std::size_t kMostMetadata = std::size_t{16} << 20;  // a compressed box of some kilobytes may hold gigabytes

struct Destroy {
  void operator()(JxlDecoder* d) const { JxlDecoderDestroy(d); }
};
using Decoder = std::unique_ptr<JxlDecoder, Destroy>;

// Calls a function about colours. Before libjxl 0.9 these took a format of pixels, which they ignored.
template <class... Rest>
JxlDecoderStatus ask(JxlDecoderStatus (*function)(const JxlDecoder*, Rest...), const JxlDecoder* d,
                     std::type_identity_t<Rest>... rest) {
  return function(d, rest...);
}
template <class... Rest>
JxlDecoderStatus ask(JxlDecoderStatus (*function)(const JxlDecoder*, const JxlPixelFormat*, Rest...), const JxlDecoder* d,
                     std::type_identity_t<Rest>... rest) {
  return function(d, nullptr, rest...);
}

// EXIF or XMP, as they come out of their box.
class Box {
 public:
  explicit Box(JxlDecoder* decoder) : decoder_(decoder) {}

  void begin() {
    JxlBoxType type{};
    if (JxlDecoderGetBoxType(decoder_, type, JXL_TRUE) != JXL_DEC_SUCCESS) return;
    exif_ = std::memcmp(type, "Exif", 4) == 0;
    open_ = exif_ || std::memcmp(type, "xml ", 4) == 0;
    bytes_.clear();
    if (open_) grow();
  }
  // False: it holds too much.
  bool grow() {
    const std::size_t used = release();
    if (bytes_.size() >= kMostMetadata) return false;
    bytes_.resize(bytes_.empty() ? 4096 : bytes_.size() * 2);
    return JxlDecoderSetBoxBuffer(decoder_, bytes_.data() + used, bytes_.size() - used) == JXL_DEC_SUCCESS;
  }
  // Hands over what there is. False: the caller stops.
  bool finish(const ModuleSink& sink) {
    if (!open_) return true;
    open_ = false;
    const std::size_t size = release();
    if (!exif_) return sink.block(sink.context, Block::xmp, bytes_.data(), size);
    // The distance to the TIFF header precedes EXIF.
    const auto byte = [this](std::size_t i) { return std::size_t{bytes_[i]}; };
    const std::size_t at = size < 4 ? size : 4 + (byte(0) << 24 | byte(1) << 16 | byte(2) << 8 | byte(3));
    return at >= size || sink.block(sink.context, Block::exif, bytes_.data() + at, size - at);
  }

 private:
  std::size_t release() {
    const std::size_t left = JxlDecoderReleaseBoxBuffer(decoder_);
    return bytes_.size() - std::min(left, bytes_.size());
  }

  JxlDecoder* decoder_;
  bool open_ = false, exif_ = false;
  std::vector<std::uint8_t> bytes_;
};

class Reading {
 public:
  Reading(const ModuleRead& request, const ModuleSink& sink, ModuleText error)
      : request_(request), sink_(sink), error_(error), decoder_(JxlDecoderCreate(nullptr)), box_(decoder_.get()) {}

  Outcome run() {
    if (!begin()) return say(error_, Outcome::failed, "libjxl cannot begin");
    while (true) {
      const JxlDecoderStatus status = JxlDecoderProcessInput(decoder_.get());
      if (status == JXL_DEC_SUCCESS) return finish();
      if (status == JXL_DEC_NEED_MORE_INPUT && have_ && !closed_) {  // is what follows the pixels whole?
        closed_ = true;
        JxlDecoderCloseInput(decoder_.get());
        continue;
      }
      // Closed earlier, libjxl would complain of missing input on standard error.
      if (status == JXL_DEC_NEED_MORE_INPUT) return say(error_, Outcome::damaged, "it ends too early");
      if (status == JXL_DEC_ERROR) return say(error_, Outcome::damaged, "its data are invalid");
      const Outcome outcome = on_event(status);
      if (outcome != Outcome::ok || done_) return outcome;
    }
  }

 private:
  bool begin() {
    JxlDecoder* d = decoder_.get();
    const bool pixels = !request_.header, metadata = pixels && request_.metadata;
    const int events =
        JXL_DEC_BASIC_INFO | JXL_DEC_COLOR_ENCODING | (pixels ? JXL_DEC_FULL_IMAGE : 0) | (metadata ? JXL_DEC_BOX : 0);
    if (d == nullptr || JxlDecoderSubscribeEvents(d, events) != JXL_DEC_SUCCESS) return false;
    if (metadata && JxlDecoderSetDecompressBoxes(d, JXL_TRUE) != JXL_DEC_SUCCESS) return false;
    if (JxlDecoderSetUnpremultiplyAlpha(d, JXL_TRUE) != JXL_DEC_SUCCESS) return false;
    return JxlDecoderSetInput(d, static_cast<const std::uint8_t*>(request_.data), request_.size) == JXL_DEC_SUCCESS;
  }

  Outcome on_event(JxlDecoderStatus status) {
    switch (status) {
      case JXL_DEC_BASIC_INFO: return read_info();
      case JXL_DEC_COLOR_ENCODING: return read_colours();
      case JXL_DEC_NEED_IMAGE_OUT_BUFFER: return give_room();
      case JXL_DEC_FULL_IMAGE:
        have_ = true;
        done_ = !request_.metadata || facts_.animation;  // other metadata may come behind the pixels, but so do more pictures
        return done_ ? finish() : Outcome::ok;
      case JXL_DEC_BOX:
        if (!box_.finish(sink_)) return Outcome::stopped;
        box_.begin();
        return Outcome::ok;
      case JXL_DEC_BOX_NEED_MORE_OUTPUT:
        return box_.grow() ? Outcome::ok : say(error_, Outcome::damaged, "its metadata have more than 16 MiB");
      default: return say(error_, Outcome::failed, "libjxl does what it was not asked for");
    }
  }

  Outcome finish() {
    if (!request_.header && !have_) return say(error_, Outcome::damaged, "it ends too early");
    return box_.finish(sink_) ? Outcome::ok : Outcome::stopped;
  }

  Outcome read_info() {
    if (JxlDecoderGetBasicInfo(decoder_.get(), &info_) != JXL_DEC_SUCCESS) {
      return say(error_, Outcome::damaged, "its header is invalid");
    }
    for (std::uint32_t i = 0; i < info_.num_extra_channels; ++i) {
      JxlExtraChannelInfo extra;
      if (JxlDecoderGetExtraChannelInfo(decoder_.get(), i, &extra) == JXL_DEC_SUCCESS && extra.type == JXL_CHANNEL_BLACK) {
        return say(error_, Outcome::unsupported, "its colours are inks");
      }
    }
    facts_ = {info_.xsize,
              info_.ysize,
              1,
              info_.alpha_bits > 0,
              false,
              info_.num_color_channels == 1,
              false,
              0,
              info_.have_animation != JXL_FALSE};
    return Outcome::ok;
  }

  // The profile that the pixels will have; none for sRGB.
  Outcome read_colours() {
    JxlDecoder* d = decoder_.get();
    JxlColorEncoding colours;
    if (info_.uses_original_profile == JXL_FALSE &&
        ask(JxlDecoderGetColorAsEncodedProfile, d, JXL_COLOR_PROFILE_TARGET_ORIGINAL, &colours) != JXL_DEC_SUCCESS) {
      colours = {};  // libjxl converts them in any case, and would make them linear
      colours.color_space = info_.num_color_channels == 1 ? JXL_COLOR_SPACE_GRAY : JXL_COLOR_SPACE_RGB;
      colours.white_point = JXL_WHITE_POINT_D65;
      colours.primaries = JXL_PRIMARIES_SRGB;
      colours.transfer_function = JXL_TRANSFER_FUNCTION_SRGB;
      colours.rendering_intent = JXL_RENDERING_INTENT_PERCEPTUAL;
      static_cast<void>(JxlDecoderSetPreferredColorProfile(d, &colours));
    }
    const bool known = ask(JxlDecoderGetColorAsEncodedProfile, d, JXL_COLOR_PROFILE_TARGET_DATA, &colours) == JXL_DEC_SUCCESS;
    const bool primaries = colours.color_space == JXL_COLOR_SPACE_GRAY || colours.primaries == JXL_PRIMARIES_SRGB;
    const bool srgb = known && primaries && colours.white_point == JXL_WHITE_POINT_D65 &&
                      colours.transfer_function == JXL_TRANSFER_FUNCTION_SRGB;
    std::size_t size = 0;
    if (!srgb && ask(JxlDecoderGetICCProfileSize, d, JXL_COLOR_PROFILE_TARGET_DATA, &size) != JXL_DEC_SUCCESS) size = 0;
    facts_.icc = size > 0;
    if (!sink_.facts(sink_.context, &facts_)) return Outcome::stopped;
    done_ = request_.header;
    if (done_ || size == 0 || !request_.metadata) return Outcome::ok;
    std::vector<std::uint8_t> icc(size);
    if (ask(JxlDecoderGetColorAsICCProfile, d, JXL_COLOR_PROFILE_TARGET_DATA, icc.data(), size) != JXL_DEC_SUCCESS) {
      return say(error_, Outcome::damaged, "its colour profile is invalid");
    }
    return sink_.block(sink_.context, Block::icc, icc.data(), size) ? Outcome::ok : Outcome::stopped;
  }

  Outcome give_room() {
    format_.num_channels = facts_.alpha ? 4 : 3;
    std::size_t size = 0;
    const std::size_t expected = std::size_t{info_.xsize} * info_.ysize * format_.num_channels;
    if (JxlDecoderImageOutBufferSize(decoder_.get(), &format_, &size) != JXL_DEC_SUCCESS || size != expected) {
      return say(error_, Outcome::damaged, "its pixels are not as many as its header says");
    }
    unsigned char* out = sink_.pixels(sink_.context, static_cast<int>(info_.xsize), static_cast<int>(info_.ysize),
                                      static_cast<int>(format_.num_channels));
    if (out == nullptr) return Outcome::stopped;
    if (JxlDecoderSetImageOutBuffer(decoder_.get(), &format_, out, size) == JXL_DEC_SUCCESS) return Outcome::ok;
    return say(error_, Outcome::failed, "libjxl does not take the memory for its pixels");
  }

  const ModuleRead& request_;
  const ModuleSink& sink_;
  ModuleText error_;
  Decoder decoder_;
  Box box_;
  JxlBasicInfo info_{};
  JxlPixelFormat format_{3, JXL_TYPE_UINT8, JXL_NATIVE_ENDIAN, 0};
  ModuleFacts facts_{};
  bool have_ = false, done_ = false, closed_ = false;
};

Outcome read(const ModuleRead* request, const ModuleSink* sink, ModuleText error) {
  return guarded(error, [&] { return Reading(*request, *sink, error).run(); });
}

const PictureModule kModule{module_head<PictureModule>(SDX_VERSION), &read, nullptr};

}  // namespace
}  // namespace sdx::media

extern "C" __attribute__((visibility("default"))) const sdx::ModuleHead* sdx_jxl_module() { return &sdx::media::kModule.head; }
