#include "media/preprocess.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/suggest.h"
#include "tensor/dispatch.h"
#include "tensor/element.h"
#include "tensor/types.h"

namespace sdx::media {
namespace {

template <class T>
T lookup(std::string_view what, std::string_view text, std::initializer_list<std::pair<const char*, T>> table) {
  std::vector<std::string> names;
  for (const auto& [name, value] : table) {
    if (text == name) return value;
    names.emplace_back(name);
  }
  fail(ErrorCode::invalid_argument, "unknown {} '{}'; one of: {}", what, text, join(names));
}

Image placed(const Image& image, const Preprocess& p, Placement& placement) {
  const int width = p.width > 0 ? p.width : image.width;
  const int height = p.height > 0 ? p.height : image.height;
  switch (p.fit) {
    case Fit::letterbox: return letterbox(image, width, height, p.filter, p.fill, true, &placement);
    case Fit::letterbox_corner: return letterbox(image, width, height, p.filter, p.fill, false, &placement);
    case Fit::crop: return center_crop(image, width, height, p.filter, &placement);
    case Fit::stretch: break;
  }
  placement = {static_cast<double>(width) / image.width, static_cast<double>(height) / image.height, 0, 0};
  return resize(image, width, height, p.filter);
}

float per_channel(const std::vector<float>& values, int channel, float otherwise) {
  if (values.empty()) return otherwise;
  return values.size() == 1 ? values[0] : values[static_cast<std::size_t>(channel)];
}

template <class T>
T convert(float v) {
  if constexpr (std::is_integral_v<T>) {
    const double r = std::nearbyint(static_cast<double>(v));
    if (std::isnan(r)) return 0;
    if (r <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    if (r >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    return static_cast<T>(r);
  } else {
    return T(v);
  }
}

// A pixel has 256 values, so each channel is a table.
template <class T>
std::array<T, 256> channel_table(const Preprocess& p, int channel) {
  std::array<T, 256> table;
  const float mean = per_channel(p.mean, channel, 0.0F);
  const float deviation = per_channel(p.deviation, channel, 1.0F);
  for (std::size_t i = 0; i < 256; ++i) table[i] = convert<T>((static_cast<float>(i) * p.scale - mean) / deviation);
  return table;
}

std::uint8_t sample(const std::uint8_t* pixel, int channels, Color color, int channel) {
  if (color == Color::gray) {
    if (channels == 1) return pixel[0];
    // ITU-R BT.601 luma in 16-bit fixed point
    return static_cast<std::uint8_t>((pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 32768) >> 16);
  }
  if (channels == 1) return pixel[0];
  return pixel[color == Color::bgr ? 2 - channel : channel];
}

template <class T>
void fill(const Image& image, const Preprocess& p, int channels, bool planar, T* out) {
  const std::int64_t plane = static_cast<std::int64_t>(image.width) * image.height;
  for (int c = 0; c < channels; ++c) {
    const std::array<T, 256> table = channel_table<T>(p, c);
    T* to = planar ? out + c * plane : out + c;
    const std::int64_t step = planar ? 1 : channels;
    const std::uint8_t* from = image.pixels.data();
    for (std::int64_t i = 0; i < plane; ++i, from += image.channels)
      to[i * step] = table[sample(from, image.channels, p.color, c)];
  }
}

void check_list(const char* what, const std::vector<float>& values, int channels) {
  if (values.size() > 1 && values.size() != static_cast<std::size_t>(channels)) {
    fail(ErrorCode::invalid_argument, "{} has {} values, expected 1 or {} (one a channel)", what, values.size(), channels);
  }
  for (const float v : values) {
    if (!std::isfinite(v)) fail(ErrorCode::invalid_argument, "{} holds a value that is not finite", what);
  }
}

}  // namespace

void set_normalization(Preprocess& p, std::string_view name) {
  enum class Kind { none, unit, both, imagenet, clip };
  const Kind kind = lookup<Kind>("normalisation", name,
                                 {{"none", Kind::none},
                                  {"0-1", Kind::unit},
                                  {"unit", Kind::unit},
                                  {"-1-1", Kind::both},
                                  {"signed", Kind::both},
                                  {"imagenet", Kind::imagenet},
                                  {"clip", Kind::clip}});
  p.scale = kind == Kind::none ? 1.0F : 1.0F / 255.0F;
  p.mean.clear();
  p.deviation.clear();
  if (kind == Kind::both) p.mean = p.deviation = {0.5F};
  if (kind == Kind::imagenet) {
    p.mean = {0.485F, 0.456F, 0.406F};
    p.deviation = {0.229F, 0.224F, 0.225F};
  }
  if (kind == Kind::clip) {
    p.mean = {0.48145466F, 0.4578275F, 0.40821073F};
    p.deviation = {0.26862954F, 0.26130258F, 0.27577711F};
  }
  if (p.color == Color::bgr) {
    std::reverse(p.mean.begin(), p.mean.end());
    std::reverse(p.deviation.begin(), p.deviation.end());
  }
}

Fit parse_fit(std::string_view text) {
  return lookup<Fit>("fit", text,
                     {{"stretch", Fit::stretch},
                      {"letterbox", Fit::letterbox},
                      {"letterbox-corner", Fit::letterbox_corner},
                      {"crop", Fit::crop}});
}

Filter parse_filter(std::string_view text) {
  return lookup<Filter>(
      "filter", text,
      {{"nearest", Filter::nearest}, {"bilinear", Filter::bilinear}, {"bicubic", Filter::bicubic}, {"area", Filter::area}});
}

Layout parse_layout(std::string_view text) {
  return lookup<Layout>(
      "layout", text,
      {{"nchw", Layout::nchw}, {"nhwc", Layout::nhwc}, {"chw", Layout::chw}, {"hwc", Layout::hwc}, {"hw", Layout::hw}});
}

Color parse_color(std::string_view text) {
  return lookup<Color>("colour order", text,
                       {{"rgb", Color::rgb}, {"bgr", Color::bgr}, {"gray", Color::gray}, {"grey", Color::gray}});
}

Tensor to_tensor(const Image& image, const Preprocess& p, Placement* placement) {
  const int channels = p.color == Color::gray ? 1 : 3;
  if (p.layout == Layout::hw && channels != 1) {
    fail(ErrorCode::invalid_argument, "layout 'hw' has room for one channel: choose colour 'gray'");
  }
  if (p.width < 0 || p.height < 0) fail(ErrorCode::invalid_argument, "the size must not be negative");
  check_list("mean", p.mean, channels);
  check_list("deviation", p.deviation, channels);
  if (std::any_of(p.deviation.begin(), p.deviation.end(), [](float d) { return d == 0.0F; })) {
    fail(ErrorCode::invalid_argument, "a deviation of 0 cannot be divided by");
  }
  Placement where;
  const Image sized = placed(image, p, where);
  if (placement != nullptr) *placement = where;
  const bool planar = p.layout == Layout::nchw || p.layout == Layout::chw;
  Shape shape = planar ? Shape{channels, sized.height, sized.width} : Shape{sized.height, sized.width, channels};
  if (p.layout == Layout::nchw || p.layout == Layout::nhwc) shape.insert(shape.begin(), 1);
  if (p.layout == Layout::hw) shape = {sized.height, sized.width};
  Tensor out(p.dtype, std::move(shape));
  dispatch(p.dtype, NumericTypes{}, "an image as a tensor", [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill<T>(sized, p, channels, planar, static_cast<T*>(out.mutable_data()));
  });
  return out;
}

Image from_tensor(const Tensor& tensor, Layout layout, float scale) {
  Shape shape = tensor.shape();
  if (shape.size() == 4 && shape[0] == 1) shape.erase(shape.begin());
  if (shape.size() == 2) shape.push_back(1);
  const bool planar = shape.size() == 3 && tensor.rank() != 2 && (layout == Layout::nchw || layout == Layout::chw);
  if (planar) shape = {shape[1], shape[2], shape[0]};
  if (shape.size() != 3 || shape[0] < 1 || shape[0] > 65535 || shape[1] < 1 || shape[1] > 65535 ||
      (shape[2] != 1 && shape[2] != 3 && shape[2] != 4)) {
    fail(ErrorCode::invalid_argument, "a tensor {} is no image: expected [1,]C,H,W or [1,]H,W,C with 1, 3 or 4 channels",
         tensor.type_string());
  }
  Image image = Image::blank(static_cast<int>(shape[1]), static_cast<int>(shape[0]), static_cast<int>(shape[2]));
  const std::int64_t plane = shape[0] * shape[1];
  for (std::int64_t i = 0; i < plane; ++i) {
    for (std::int64_t c = 0; c < shape[2]; ++c) {
      const double v = element_as_double(tensor, planar ? c * plane + i : i * shape[2] + c) * static_cast<double>(scale);
      const double clamped = std::isnan(v) ? 0 : std::clamp(std::nearbyint(v), 0.0, 255.0);
      image.pixels[static_cast<std::size_t>(i * shape[2] + c)] = static_cast<std::uint8_t>(clamped);
    }
  }
  return image;
}

}  // namespace sdx::media
