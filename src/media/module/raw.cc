// libsdx_raw.so: cameras' raw files by LibRaw.

#include <libraw/libraw.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "media/module/support.h"

namespace sdx::media {
namespace {

// A preview shows faces without reading the sensor's data, which takes seconds.
constexpr int kPreview = 1000;

struct Close {
  void operator()(libraw_data_t* r) const { libraw_close(r); }
  void operator()(libraw_processed_image_t* i) const { libraw_dcraw_clear_mem(i); }
};
using Raw = std::unique_ptr<libraw_data_t, Close>;

Outcome failed(ModuleText error, int code) {
  const bool kind = code == LIBRAW_FILE_UNSUPPORTED || code == LIBRAW_NOT_IMPLEMENTED || code == LIBRAW_UNSUPPORTED_THUMBNAIL;
  const Outcome outcome = kind ? Outcome::unsupported : code == LIBRAW_UNSUFFICIENT_MEMORY ? Outcome::failed : Outcome::damaged;
  return say(error, outcome, libraw_strerror(code));
}

// dcraw's numbers: 3 half a turn, 5 a quarter against the clock, 6 with it.
int orientation_of(int flip) { return flip == 3 ? 3 : flip == 5 ? 8 : flip == 6 ? 6 : 1; }

// Longest side of the JPEG preview; 0: there is none.
int preview_side(libraw_data_t* raw) {
  if (libraw_unpack_thumb(raw) != LIBRAW_SUCCESS || raw->thumbnail.tformat != LIBRAW_THUMBNAIL_JPEG) return 0;
  return std::max<int>(std::max(raw->thumbnail.twidth, raw->thumbnail.theight), 1);
}

Outcome develop(libraw_data_t* raw, const ModuleSink& sink, ModuleText error) {
  raw->params.half_size = 1;
  raw->params.use_camera_wb = 1;
  raw->params.output_color = 1;  // sRGB
  raw->params.output_bps = 8;
  raw->params.user_flip = 0;  // the caller turns it
  int code = libraw_unpack(raw);
  if (code == LIBRAW_SUCCESS) code = libraw_dcraw_process(raw);
  if (code != LIBRAW_SUCCESS) return failed(error, code);
  const std::unique_ptr<libraw_processed_image_t, Close> image(libraw_dcraw_make_mem_image(raw, &code));
  if (!image) return failed(error, code);
  const std::size_t size = std::size_t{image->width} * image->height * image->colors;
  if (image->type != LIBRAW_IMAGE_BITMAP || image->bits != 8 || (image->colors != 1 && image->colors != 3) ||
      image->data_size < size)
    return say(error, Outcome::unsupported, "LibRaw develops it to an unusual kind of picture");
  unsigned char* out = sink.pixels(sink.context, image->width, image->height, image->colors);
  if (out == nullptr) return Outcome::stopped;
  std::memcpy(out, image->data, size);
  return Outcome::ok;
}

Outcome read(const ModuleRead* request, const ModuleSink* sink, ModuleText error) {
  return guarded(error, [&] {
    const Raw raw(libraw_init(LIBRAW_OPIONS_NO_DATAERR_CALLBACK));
    if (!raw) return say(error, Outcome::failed, "there is not enough memory");
    const int code = libraw_open_buffer(raw.get(), const_cast<void*>(request->data), request->size);
    if (code != LIBRAW_SUCCESS) return failed(error, code);
    const libraw_image_sizes_t& s = raw->sizes;
    const ModuleFacts facts{s.width, s.height, orientation_of(s.flip), false, false, false, false, 0, false};
    if (!sink->facts(sink->context, &facts)) return Outcome::stopped;
    if (std::int64_t{s.raw_width} * s.raw_height / 2 > request->most_pixels) {
      return say(error, Outcome::unsupported, "its sensor has more pixels than the limit");
    }
    if (request->header) return Outcome::ok;
    const int side = preview_side(raw.get());
    const int wanted = request->at_least > 0 ? request->at_least : kPreview;
    const int developed = std::max(s.width, s.height) / 2;
    if (side > 0 && (side >= wanted || side >= developed)) {
      const auto& t = raw->thumbnail;
      return sink->block(sink->context, Block::jpeg, t.thumb, t.tlength) ? Outcome::ok : Outcome::stopped;
    }
    return develop(raw.get(), *sink, error);
  });
}

const PictureModule kModule{module_head<PictureModule>(SDX_VERSION), &read, nullptr};

}  // namespace
}  // namespace sdx::media

extern "C" __attribute__((visibility("default"))) const sdx::ModuleHead* sdx_raw_module() { return &sdx::media::kModule.head; }
