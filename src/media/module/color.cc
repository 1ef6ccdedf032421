// libsdx_color.so: colour profiles by Little CMS.

#include <lcms2.h>

#include <cstring>
#include <memory>
#include <vector>

#include "media/module/support.h"

namespace sdx::media {
namespace {

void on_error(cmsContext, cmsUInt32Number, const char*) {}

struct Free {
  void operator()(cmsContext c) const { cmsDeleteContext(c); }
};
struct Close {
  void operator()(cmsHPROFILE p) const { cmsCloseProfile(p); }
};
struct Delete {
  void operator()(cmsHTRANSFORM t) const { cmsDeleteTransform(t); }
};
template <class D>
using Handle = std::unique_ptr<void, D>;  // all are void* or pointers to what is not declared

bool fits(cmsColorSpaceSignature space, Colors colors) {
  return space == (colors == Colors::inks ? cmsSigCmykData : colors == Colors::grey ? cmsSigGrayData : cmsSigRgbData);
}

cmsUInt32Number format_of(Colors colors, int channels) {
  const auto n = static_cast<cmsUInt32Number>(channels);
  if (colors == Colors::inks) return TYPE_CMYK_8;
  if (colors == Colors::grey) return COLORSPACE_SH(PT_GRAY) | CHANNELS_SH(1) | EXTRA_SH(n - 1) | BYTES_SH(1);
  return COLORSPACE_SH(PT_RGB) | CHANNELS_SH(3) | EXTRA_SH(n - 3) | BYTES_SH(1);
}

Outcome convert(const ModuleTransform& r, ModuleText error) {
  const std::unique_ptr<std::remove_pointer_t<cmsContext>, Free> context(cmsCreateContext(nullptr, nullptr));
  if (!context) return say(error, Outcome::failed, "there is not enough memory");
  cmsSetLogErrorHandlerTHR(context.get(), on_error);
  const Handle<Close> profile(cmsOpenProfileFromMemTHR(context.get(), r.icc, static_cast<cmsUInt32Number>(r.icc_size)));
  if (!profile) return say(error, Outcome::damaged, "its colour profile is damaged");
  if (!fits(cmsGetColorSpace(profile.get()), r.colors)) {
    return say(error, Outcome::unsupported, "its colour profile is for other colours than it has");
  }
  const Handle<Close> srgb(cmsCreate_sRGBProfileTHR(context.get()));
  const cmsUInt32Number flags = r.colors == Colors::rgb && r.out_channels == 4 ? cmsFLAGS_COPY_ALPHA : 0;
  const Handle<Delete> transform(cmsCreateTransformTHR(context.get(), profile.get(), format_of(r.colors, r.in_channels),
                                                       srgb.get(), format_of(Colors::rgb, r.out_channels), INTENT_PERCEPTUAL,
                                                       flags));
  if (!transform) return say(error, Outcome::damaged, "its colour profile cannot be used");
  const std::size_t in_line = static_cast<std::size_t>(r.width) * static_cast<std::size_t>(r.in_channels);
  const std::size_t out_line = static_cast<std::size_t>(r.width) * static_cast<std::size_t>(r.out_channels);
  std::vector<unsigned char> line(in_line);
  for (int y = 0; y < r.height; ++y) {
    std::memcpy(line.data(), r.in + static_cast<std::size_t>(y) * in_line, in_line);
    cmsDoTransform(transform.get(), line.data(), r.out + static_cast<std::size_t>(y) * out_line,
                   static_cast<cmsUInt32Number>(r.width));
  }
  return Outcome::ok;
}

Outcome to_srgb(const ModuleTransform* request, ModuleText error) {
  return guarded(error, [&] { return convert(*request, error); });
}

const ColorModule kModule{module_head<ColorModule>(SDX_VERSION), &to_srgb};

}  // namespace
}  // namespace sdx::media

extern "C" __attribute__((visibility("default"))) const sdx::ModuleHead* sdx_color_module() { return &sdx::media::kModule.head; }
