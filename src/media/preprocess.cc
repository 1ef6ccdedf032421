#include "media/preprocess.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/suggest.h"
#include "media/resize.h"
#include "tensor/dispatch.h"
#include "tensor/types.h"

namespace sdx::media {
namespace {

constexpr int kMostSide = 65535;

template <class T>
T lookup(std::string_view what, std::string_view text, std::initializer_list<std::pair<const char*, T>> table) {
  std::vector<std::string> names;
  for (const auto& [name, value] : table) {
    if (text == name) return value;
    names.emplace_back(name);
  }
  fail(ErrorCode::invalid_argument, "unknown {} '{}'; one of: {}", what, text, join(names));
}

bool colours(std::int64_t extent) { return extent == 1 || extent == 3; }

// The axes of colour, height and width: the axis of 1 or 3 is colour; if none is fixed, the first.
Layout guess_layout(const ValueSpec* input) {
  if (input == nullptr || !input->has_shape) return Layout::nchw;
  const Shape& s = input->shape;
  if (s.size() == 2) return Layout::hw;
  if (s.size() == 3) return colours(s[2]) && !colours(s[0]) ? Layout::hwc : Layout::chw;
  return s.size() == 4 && colours(s[3]) && !colours(s[1]) ? Layout::nhwc : Layout::nchw;
}

struct Axes {
  std::int64_t channels = -1, height = -1, width = -1;
};

Axes axes_of(const ValueSpec* input, Layout layout) {
  if (input == nullptr || !input->has_shape) return {};
  const Shape& s = input->shape;
  if (layout == Layout::nchw && s.size() == 4) return {s[1], s[2], s[3]};
  if (layout == Layout::nhwc && s.size() == 4) return {s[3], s[1], s[2]};
  if (layout == Layout::chw && s.size() == 3) return {s[0], s[1], s[2]};
  if (layout == Layout::hwc && s.size() == 3) return {s[2], s[0], s[1]};
  if (layout == Layout::hw && s.size() == 2) return {1, s[0], s[1]};
  return {};
}

int side_of(std::int64_t extent) { return extent > 0 && extent <= kMostSide ? static_cast<int>(extent) : 0; }

DataType type_of(const ValueSpec* input) {
  return input == nullptr || input->dtype == DataType::undefined ? DataType::float32 : input->dtype;
}

bool has_name(const Preprocessing& p) { return !p.normalize.empty() && p.normalize != "custom"; }
bool has_parts(const Preprocessing& p) { return p.scale || !p.mean.empty() || !p.deviation.empty(); }

int proportional(int side, int from, int to) {
  const double scaled = static_cast<double>(side) * to / from;
  return static_cast<int>(std::clamp(std::nearbyint(scaled), 1.0, static_cast<double>(kMostSide)));
}

std::uint8_t grey(const Preprocessing& p) { return static_cast<std::uint8_t>(std::clamp(p.fill, 0, 255)); }

Placement scaled(const Image& from, const Image& to) {
  return {static_cast<double>(to.width) / from.width, static_cast<double>(to.height) / from.height, 0, 0};
}

// 0: as the picture.
Image placed(const Image& image, const Preprocessing& p, int width, int height, Placement& placement) {
  width = width > 0 ? width : image.width;
  height = height > 0 ? height : image.height;
  switch (p.fit) {
    case Fit::letterbox: return letterbox(image, width, height, p.filter, grey(p), true, &placement);
    case Fit::letterbox_corner: return letterbox(image, width, height, p.filter, grey(p), false, &placement);
    case Fit::crop: return center_crop(image, width, height, p.filter, &placement);
    case Fit::stretch: break;
  }
  Image out = resize(image, width, height, p.filter);
  placement = scaled(image, out);
  return out;
}

Image with_shorter_side(const Image& image, const Preprocessing& p, Placement& placement) {
  const bool wide = image.width >= image.height;
  const int other = proportional(wide ? image.width : image.height, wide ? image.height : image.width, p.shorter_side);
  Image out = wide ? resize(image, other, p.shorter_side, p.filter) : resize(image, p.shorter_side, other, p.filter);
  placement = scaled(image, out);
  return out;
}

// The picture in the tensor's size: by `resize: 256` and then `crop: 224`, by a size, or by the input's declaration.
Image sized(const Image& image, const Preprocessing& p, const Axes& axes, Placement& placement) {
  const int declared_width = side_of(axes.width), declared_height = side_of(axes.height);
  if (p.shorter_side <= 0 && p.crop_width <= 0) {
    return placed(image, p, p.width > 0 ? p.width : declared_width, p.height > 0 ? p.height : declared_height, placement);
  }
  Image out = p.shorter_side > 0 ? with_shorter_side(image, p, placement)
              : p.width > 0      ? placed(image, p, p.width, p.height > 0 ? p.height : declared_height, placement)
                                 : image;
  int width = p.crop_width, height = p.crop_height;
  if (width > out.width || height > out.height) {
    fail(ErrorCode::invalid_argument, "a piece of {}x{} cannot be cut out of a picture of {}x{}: resize it to at least that size",
         width, height, out.width, out.height);
  }
  if (width == 0) {  // what the model takes, as far as it says
    width = declared_width;
    height = declared_height;
  }
  if (width <= 0 || height <= 0) return out;
  const int x = (out.width - width) / 2, y = (out.height - height) / 2;
  placement.offset_x -= x;
  placement.offset_y -= y;
  return crop(out, x, y, width, height, grey(p));
}

Normalization values_of(const Preprocessing& p, DataType dtype, Color color) {
  // Parts alone mean pixels of 0 to 255, as the formula says.
  Normalization n = normalization(has_name(p) ? p.normalize : has_parts(p) || !is_floating(dtype) ? "none" : "0-1", color);
  if (p.scale) n.scale = *p.scale;
  if (!p.mean.empty()) n.mean = p.mean;
  if (!p.deviation.empty()) n.deviation = p.deviation;
  return n;
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
std::array<T, 256> channel_table(const Normalization& n, int channel) {
  std::array<T, 256> table;
  const float mean = per_channel(n.mean, channel, 0.0F);
  const float deviation = per_channel(n.deviation, channel, 1.0F);
  for (std::size_t i = 0; i < 256; ++i) table[i] = convert<T>((static_cast<float>(i) * n.scale - mean) / deviation);
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
void fill(const Image& image, const Normalization& n, Color color, int channels, bool planar, T* out) {
  const std::int64_t plane = static_cast<std::int64_t>(image.width) * image.height;
  for (int c = 0; c < channels; ++c) {
    const std::array<T, 256> table = channel_table<T>(n, c);
    T* to = planar ? out + c * plane : out + c;
    const std::int64_t step = planar ? 1 : channels;
    const std::uint8_t* from = image.pixels.data();
    for (std::int64_t i = 0; i < plane; ++i, from += image.channels) to[i * step] = table[sample(from, image.channels, color, c)];
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

Normalization normalization(std::string_view name, Color color) {
  enum class Kind { none, unit, both, imagenet, clip };
  const Kind kind = lookup<Kind>("normalisation", name,
                                 {{"none", Kind::none},
                                  {"0-1", Kind::unit},
                                  {"unit", Kind::unit},
                                  {"-1-1", Kind::both},
                                  {"signed", Kind::both},
                                  {"imagenet", Kind::imagenet},
                                  {"clip", Kind::clip}});
  Normalization n;
  n.scale = kind == Kind::none ? 1.0F : 1.0F / 255.0F;
  if (kind == Kind::both) n.mean = n.deviation = {0.5F};
  if (kind == Kind::imagenet) {
    n.mean = {0.485F, 0.456F, 0.406F};
    n.deviation = {0.229F, 0.224F, 0.225F};
  }
  if (kind == Kind::clip) {
    n.mean = {0.48145466F, 0.4578275F, 0.40821073F};
    n.deviation = {0.26862954F, 0.26130258F, 0.27577711F};
  }
  if (color == Color::bgr) {
    std::reverse(n.mean.begin(), n.mean.end());
    std::reverse(n.deviation.begin(), n.deviation.end());
  }
  return n;
}

bool scales_unasked(const Preprocessing& p, const ValueSpec* input) {
  return !has_name(p) && !has_parts(p) && is_floating(type_of(input));
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

Tensor to_tensor(const Image& image, const Preprocessing& p, const ValueSpec* input, Placement* placement) {
  check_pixels(image);
  const Layout layout = p.layout.value_or(guess_layout(input));
  const Axes axes = axes_of(input, layout);
  const Color color = p.color.value_or(axes.channels == 1 ? Color::gray : Color::rgb);
  const DataType dtype = type_of(input);
  const Normalization values = values_of(p, dtype, color);
  const int channels = color == Color::gray ? 1 : 3;
  if (p.layout && axes.channels > 0 && axes.channels != channels) {
    fail(ErrorCode::invalid_argument, "the layout puts {} colour{} where input '{}', {}, has {}: choose the layout that fits",
         channels, channels == 1 ? "" : "s", input->name, input->type, axes.channels);
  }
  if (layout == Layout::hw && channels != 1) {
    fail(ErrorCode::invalid_argument, "layout 'hw' has room for one channel: choose colour 'gray'");
  }
  if (p.width < 0 || p.height < 0) fail(ErrorCode::invalid_argument, "the size must not be negative");
  check_list("mean", values.mean, channels);
  check_list("deviation", values.deviation, channels);
  if (std::any_of(values.deviation.begin(), values.deviation.end(), [](float d) { return d == 0.0F; })) {
    fail(ErrorCode::invalid_argument, "a standard deviation must not be 0");
  }
  Placement where;
  const Image ready = sized(image, p, axes, where);
  if (placement != nullptr) *placement = where;
  const bool planar = layout == Layout::nchw || layout == Layout::chw;
  Shape shape = planar ? Shape{channels, ready.height, ready.width} : Shape{ready.height, ready.width, channels};
  if (layout == Layout::nchw || layout == Layout::nhwc) shape.insert(shape.begin(), 1);
  if (layout == Layout::hw) shape = {ready.height, ready.width};
  Tensor out(dtype, std::move(shape));
  dispatch(dtype, NumericTypes{}, "an image as a tensor", [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill<T>(ready, values, color, channels, planar, static_cast<T*>(out.mutable_data()));
  });
  return out;
}

}  // namespace sdx::media
