#include "vision/detect/shrink.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "kernels/cpu/image/shrink.h"
#include "tensor/element.h"

namespace sdx::vision {
namespace {

using media::Image;

Image in_colour(const Image& picture) {
  Image out = Image::blank(picture.width, picture.height, 3);
  const auto channels = static_cast<std::size_t>(picture.channels);
  const std::size_t green = channels == 1 ? 0 : 1, blue = channels == 1 ? 0 : 2;
  const std::size_t count = out.pixels.size() / 3;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t* p = picture.pixels.data() + i * channels;
    std::uint8_t* q = out.pixels.data() + i * 3;
    q[0] = p[0];
    q[1] = p[green];
    q[2] = p[blue];
  }
  return out;
}

// The model's input for each value of a pixel, by channel.
template <class T>
using Tables = std::array<std::array<T, 256>, 3>;

Tables<float> table_of(const InputRule& rule) {
  Tables<float> table{};
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t v = 0; v < 256; ++v) table[c][v] = (static_cast<float>(v) - rule.mean[c]) * rule.scale;
  }
  return table;
}

Tables<std::uint16_t> in_halves(const Tables<float>& table) {
  Tables<std::uint16_t> out{};
  Tensor half(DataType::float16, {1});
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t v = 0; v < 256; ++v) {
      set_element(half, 0, static_cast<double>(table[c][v]));
      std::memcpy(&out[c][v], half.data(), sizeof out[c][v]);
    }
  }
  return out;
}

// The path for rare cases: halves, and channels last.
template <class T>
void write_by_table(const Image& picture, const Tables<T>& table, bool bgr, bool channels_last, int width, int height, T* to) {
  const auto across = static_cast<std::size_t>(width), plane = across * static_cast<std::size_t>(height);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const bool inside = y < picture.height && x < picture.width;
      const std::size_t at = static_cast<std::size_t>(y) * across + static_cast<std::size_t>(x);
      for (std::size_t c = 0; c < 3; ++c) {
        const std::uint8_t v = inside ? picture.row(y)[static_cast<std::size_t>(x) * 3 + (bgr ? 2 - c : c)] : std::uint8_t{0};
        to[channels_last ? at * 3 + c : c * plane + at] = table[c][v];
      }
    }
  }
}

void write_planes(const Image& picture, const InputRule& rule, int width, int height, float* to) {
  const auto across = static_cast<std::size_t>(width), plane = across * static_cast<std::size_t>(height);
  std::array<float*, 3> planes{};
  std::array<float, 3> mean{}, ground{};  // by the picture's channels
  for (std::size_t c = 0; c < 3; ++c) {
    const std::size_t place = rule.bgr ? 2 - c : c;
    planes[c] = to + place * plane;
    mean[c] = rule.mean[place];
    ground[c] = -mean[c] * rule.scale;
  }
  const auto inside = static_cast<std::size_t>(picture.width);
  for (int y = 0; y < height; ++y) {
    const std::size_t filled = y < picture.height ? inside : 0;
    if (filled > 0) cpu::split3_u8(picture.row(y), picture.width, mean, rule.scale, planes);
    for (std::size_t c = 0; c < 3; ++c) {
      std::fill(planes[c] + filled, planes[c] + across, ground[c]);
      planes[c] += across;
    }
  }
}

}  // namespace

Image scaled(const Image& picture, int width, int height) {
  if (width == picture.width && height == picture.height) return picture.channels == 3 ? picture : in_colour(picture);
  Image out;
  if (width <= picture.width && height <= picture.height) {
    out = Image::blank(width, height, picture.channels);
    cpu::shrink_u8({picture.width, picture.height, width, height, picture.channels}, picture.pixels.data(), out.pixels.data());
  } else {
    out = media::resize(picture, width, height, Preprocessing::Filter::bilinear, false);
  }
  return out.channels == 3 ? out : in_colour(out);
}

Image squashed(const Image& picture, int width, int height) {
  const bool far = picture.width > 4 * width || picture.height > 4 * height;
  if (far || (width == picture.width && height == picture.height)) return scaled(picture, width, height);
  Image out = media::resize(picture, width, height, Preprocessing::Filter::bilinear, false);
  return out.channels == 3 ? out : in_colour(out);
}

Image turned(const Image& picture, int degrees) {
  const bool swapped = degrees != 180;
  Image out = Image::blank(swapped ? picture.height : picture.width, swapped ? picture.width : picture.height, 3);
  for (int y = 0; y < out.height; ++y) {
    for (int x = 0; x < out.width; ++x) {
      int u = picture.width - 1 - x, v = picture.height - 1 - y;
      if (degrees == 90) {
        u = y;
        v = picture.height - 1 - x;
      } else if (degrees == 270) {
        u = picture.width - 1 - y;
        v = x;
      }
      std::memcpy(out.row(y) + static_cast<std::size_t>(x) * 3, picture.row(v) + static_cast<std::size_t>(u) * 3, 3);
    }
  }
  return out;
}

Tensor input_of(const Image& picture, const InputRule& rule, int width, int height, const InputForm& form) {
  Tensor out(form.dtype, form.channels_last ? Shape{1, height, width, 3} : Shape{1, 3, height, width});
  if (form.dtype == DataType::float16) {
    write_by_table(picture, in_halves(table_of(rule)), rule.bgr, form.channels_last, width, height,
                   static_cast<std::uint16_t*>(out.mutable_data()));
  } else if (form.channels_last) {
    write_by_table(picture, table_of(rule), rule.bgr, true, width, height, out.mutable_values<float>().data());
  } else {
    write_planes(picture, rule, width, height, out.mutable_values<float>().data());
  }
  return out;
}

}  // namespace sdx::vision
