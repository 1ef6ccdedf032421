#include "media/model_input.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "media/preprocess.h"
#include "media/wav.h"

namespace sdx::media {
namespace {

constexpr int kMostSide = 65535;

bool colours(std::int64_t extent) { return extent == 1 || extent == 3; }

// Which axes are colour, height and width: the axis of 1 or 3 is colour; where none is fixed, the first.
Layout guess_layout(const ValueSpec* spec) {
  if (spec == nullptr || !spec->has_shape) return Layout::nchw;
  const Shape& s = spec->shape;
  if (s.size() == 2) return Layout::hw;
  if (s.size() == 3) return colours(s[2]) && !colours(s[0]) ? Layout::hwc : Layout::chw;
  return s.size() == 4 && colours(s[3]) && !colours(s[1]) ? Layout::nhwc : Layout::nchw;
}

struct Axes {
  std::int64_t channels = -1, height = -1, width = -1;
};

Axes axes_of(const ValueSpec* spec, Layout layout) {
  if (spec == nullptr || !spec->has_shape) return {};
  const Shape& s = spec->shape;
  if (layout == Layout::nchw && s.size() == 4) return {s[1], s[2], s[3]};
  if (layout == Layout::nhwc && s.size() == 4) return {s[3], s[1], s[2]};
  if (layout == Layout::chw && s.size() == 3) return {s[0], s[1], s[2]};
  if (layout == Layout::hwc && s.size() == 3) return {s[2], s[0], s[1]};
  if (layout == Layout::hw && s.size() == 2) return {1, s[0], s[1]};
  return {};
}

int side_of(std::int64_t extent) { return extent > 0 && extent <= kMostSide ? static_cast<int>(extent) : 0; }

int proportional(int side, int from, int to) {
  const double scaled = static_cast<double>(side) * to / from;
  return static_cast<int>(std::clamp(std::nearbyint(scaled), 1.0, static_cast<double>(kMostSide)));
}

Image middle(const Image& image, int width, int height, std::uint8_t fill) {
  return crop(image, (image.width - width) / 2, (image.height - height) / 2, width, height, fill);
}

// `resize: 256` and `crop: 224`: what to_tensor() does not know.
Image sized(Image image, const Preprocessing& p, const Axes& axes, Preprocess& to) {
  if (p.shorter_side > 0) {
    const bool wide = image.width >= image.height;
    const int other = proportional(wide ? image.width : image.height, wide ? image.height : image.width, p.shorter_side);
    image = wide ? resize(image, other, p.shorter_side, to.filter) : resize(image, p.shorter_side, other, to.filter);
  } else if (p.crop_width > 0 && to.width > 0 && to.height > 0 && p.width > 0) {
    Preprocess first = to;
    first.dtype = DataType::uint8;
    first.layout = Layout::hwc;
    first.color = Color::rgb;
    first.scale = 1.0F;
    first.mean.clear();
    first.deviation.clear();
    image = from_tensor(to_tensor(image, first), Layout::hwc);
  }
  int width = p.crop_width, height = p.crop_height;
  if (width == 0 && p.shorter_side > 0) {  // what the model takes, as far as it says
    width = side_of(axes.width);
    height = side_of(axes.height);
  }
  if (width > 0 && height > 0) image = middle(image, width, height, to.fill);
  if (p.shorter_side > 0 || p.crop_width > 0) to.width = to.height = 0;
  return image;
}

void set_values(Preprocess& to, const Preprocessing& p, bool* assumed) {
  const bool own = p.scale || !p.mean.empty() || !p.deviation.empty();
  const bool named = !p.normalize.empty() && p.normalize != "custom";
  // Parts alone mean pixels of 0 to 255, as the formula says.
  set_normalization(to, named ? p.normalize : own || !is_floating(to.dtype) ? "none" : "0-1");
  if (assumed != nullptr) *assumed = !named && !own && is_floating(to.dtype);
  if (p.scale) to.scale = *p.scale;
  if (!p.mean.empty()) to.mean = p.mean;
  if (!p.deviation.empty()) to.deviation = p.deviation;
}

}  // namespace

Tensor read_picture(const std::filesystem::path& file, const ValueSpec* spec, const Preprocessing& p, bool* assumed) {
  Preprocess to;
  to.layout = p.layout.empty() ? guess_layout(spec) : parse_layout(p.layout);
  const Axes axes = axes_of(spec, to.layout);
  to.color = axes.channels == 1 ? Color::gray : Color::rgb;
  if (!p.color.empty()) to.color = parse_color(p.color);
  to.fit = parse_fit(p.fit);
  to.filter = parse_filter(p.filter);
  to.fill = static_cast<std::uint8_t>(std::clamp(p.fill, 0, 255));
  if (spec != nullptr && spec->dtype != DataType::undefined) to.dtype = spec->dtype;
  to.width = p.width > 0 ? p.width : side_of(axes.width);
  to.height = p.height > 0 ? p.height : side_of(axes.height);
  set_values(to, p, assumed);
  const Image image = sized(read_image(file), p, axes, to);
  return to_tensor(image, to);
}

Tensor read_sound(const std::filesystem::path& file, const ValueSpec* spec, const Preprocessing& p) {
  Tensor t = to_tensor(read_wav(file), p.sample_rate);
  const std::size_t rank = spec != nullptr && spec->has_shape ? spec->shape.size() : 2;
  if (rank < 1 || rank > 4) return t;
  Shape shape(rank, 1);
  shape.back() = t.size();
  return t.reshaped(shape);
}

}  // namespace sdx::media
