#include "cli/values/media_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sdx/image.hpp>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "cli/command.h"
#include "cli/session_flags.h"
#include "media/model_input.h"
#include "media/preprocess.h"
#include "project/process.h"

namespace sdx::cli {
namespace {

std::vector<float> parse_floats(const std::string& text, const char* option) {
  std::vector<float> out;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    float v = 0;
    const auto [next, error] = std::from_chars(at, end, v);
    if (error != std::errc{} || (next != end && *next != ',') || !std::isfinite(v)) {
      throw UsageError(fmt::format("{} {}: expected numbers separated by commas", option, text));
    }
    out.push_back(v);
    at = next == end ? end : next + 1;
  }
  return out;
}

// "1/255" is how scales are usually written.
float parse_scale(const std::string& text) {
  const auto slash = text.find('/');
  const std::vector<float> top = parse_floats(text.substr(0, slash), "--scale");
  const std::vector<float> bottom =
      slash == std::string::npos ? std::vector<float>{1} : parse_floats(text.substr(slash + 1), "--scale");
  if (top.size() != 1 || bottom.size() != 1 || bottom[0] == 0.0F)
    throw UsageError(fmt::format("--scale {}: expected a number or a fraction", text));
  if (!std::isfinite(top[0] / bottom[0])) throw UsageError(fmt::format("--scale {}: that is beyond float32", text));
  return top[0] / bottom[0];
}

// Flag values are the user's typing: what the library calls an argument error is a usage error here.
template <class F>
auto usage(F&& parse) {
  try {
    return parse();
  } catch (const Error& e) {
    throw UsageError(e.message());
  }
}

int parse_fill(const std::string& text) {
  const Shape value = parse_shape(text, "--fill");
  if (value.size() != 1 || value[0] > 255) throw UsageError(fmt::format("--fill {}: expected a grey of 0 to 255", text));
  return static_cast<int>(value[0]);
}

}  // namespace

std::pair<int, int> parse_sides(const std::string& text, const char* option) {
  const Shape size = parse_shape(text, option);
  const auto side = [](std::int64_t s) { return s >= 1 && s <= 65535; };
  if (size.empty() || size.size() > 2 || !side(size[0]) || !side(size.back())) {
    throw UsageError(fmt::format("{} {}: expected WIDTHxHEIGHT, for example 640x480", option, text));
  }
  return {static_cast<int>(size[0]), static_cast<int>(size.back())};
}

namespace {

void say_scaling(const std::string& what, const ValueSpec* spec, const Preprocessing& p) {
  static bool said = false;  // once, not for each picture of a folder
  if (!media::scales_unasked(p, spec) || std::exchange(said, true)) return;
  note(fmt::format("note: {} is scaled to 0..1; choose with --normalize imagenet|0-1|-1-1|clip|none or --mean, --std, --scale",
                   what));
}

Value in_type_of(const ValueSpec* spec, Tensor t) {
  return spec == nullptr || spec->dtype == DataType::undefined ? t : convert_elements(t, spec->dtype, spec->name);
}

}  // namespace

Value image_input(const std::string& path, const ValueSpec* spec, const InputFlags& flags) {
  const Preprocessing p = flags.preprocessing(spec != nullptr ? spec->name : "");
  Tensor t = media::read_picture(path, spec, p);
  say_scaling("'" + path + "'", spec, p);
  return t;
}

Value image_input(std::span<const std::byte> bytes, const ValueSpec* spec, const InputFlags& flags) {
  const Preprocessing p = flags.preprocessing(spec != nullptr ? spec->name : "");
  Tensor t = media::to_tensor(media::decode_image(bytes), p, spec);
  say_scaling("the picture", spec, p);
  return t;
}

Value sound_input(const std::string& path, const ValueSpec* spec, const InputFlags& flags) {
  return in_type_of(spec, media::read_sound(path, spec, flags.preprocessing(spec != nullptr ? spec->name : "")));
}

Value sound_input(std::span<const std::byte> bytes, const ValueSpec* spec, const InputFlags& flags) {
  return in_type_of(spec, media::decode_sound(bytes, spec, flags.preprocessing(spec != nullptr ? spec->name : "")));
}

Preprocessing InputFlags::preprocessing(const std::string& input) const {
  Preprocessing p = project != nullptr ? project::preprocessing_of(*project, input) : Preprocessing{};
  if (!resize.empty()) {
    std::tie(p.width, p.height) = parse_sides(resize, "--resize");
    p.shorter_side = p.crop_width = p.crop_height = 0;
  }
  if (!crop.empty()) std::tie(p.crop_width, p.crop_height) = parse_sides(crop, "--crop");
  if (!fill.empty()) p.fill = parse_fill(fill);
  if (rate != 0) p.sample_rate = rate;
  // A typed normalisation replaces the file's as a whole: its parts mean nothing beside another one's.
  if (!normalize.empty() || !mean.empty() || !deviation.empty() || !scale.empty()) {
    p.normalize = normalize;
    p.scale = scale.empty() ? std::nullopt : std::optional(parse_scale(scale));
    p.mean = mean.empty() ? std::vector<float>{} : parse_floats(mean, "--mean");
    p.deviation = deviation.empty() ? std::vector<float>{} : parse_floats(deviation, "--std");
  }
  usage([&] {
    if (!fit.empty()) p.fit = media::parse_fit(fit);
    if (!filter.empty()) p.filter = media::parse_filter(filter);
    if (!layout.empty()) p.layout = media::parse_layout(layout);
    if (!color.empty()) p.color = media::parse_color(color);
    if (!p.normalize.empty() && p.normalize != "custom") media::normalization(p.normalize, media::Color::rgb);
  });
  return p;
}

void InputFlags::add_to(const Command& command) {
  command
      .add_option("-i,--input", inputs,
                  "NAME=VALUE: JSON, @file.json, or a .npy, .npz, .pb, image or .wav file; a model with one input needs no NAME=")
      ->type_name("INPUT")
      ->one_word();
  command.add_option("-f,--file", files, "All inputs from a .json or .npz file")->type_name("FILE")->one_word();
  command.add_flag("--random", random, "Random values for inputs that are not given");
  command.add_option("--seed", seed, "Seed for --random")->type_name("N");
  command.add_option("--shape", shapes, "Shape of a random input, for example data=1x3x224x224")
      ->type_name("NAME=SHAPE")
      ->one_word();
  const char* group = "Images and sound";
  command.add_option("--resize", resize, "Size of the image; default: the size that the input declares")
      ->type_name("WxH")
      ->group(group);
  command.add_option("--fit", fit, "stretch, letterbox, letterbox-corner or crop")->type_name("FIT")->group(group);
  command.add_option("--filter", filter, "bilinear, bicubic, area or nearest")->type_name("FILTER")->group(group);
  command.add_option("--crop", crop, "Crop this size from the middle after resizing")->type_name("WxH")->group(group);
  command.add_option("--fill", fill, "Grey level around a letterboxed picture, 0 to 255 (114)")->type_name("GREY")->group(group);
  command.add_option("--layout", layout, "nchw, nhwc, chw, hwc or hw; default: the layout that the input declares")
      ->type_name("LAYOUT")
      ->group(group);
  command.add_option("--color", color, "rgb, bgr or gray")->type_name("ORDER")->group(group);
  command.add_option("--normalize", normalize, "imagenet, 0-1, -1-1, clip or none (0 to 255)")->type_name("NAME")->group(group);
  command.add_option("--mean", mean, "Subtracted from each channel")->type_name("A,B,C")->group(group);
  command.add_option("--std", deviation, "Divisor of each channel")->type_name("A,B,C")->group(group);
  command.add_option("--scale", scale, "Factor applied to pixels before --mean and --std, for example 1/255")
      ->type_name("X")
      ->group(group);
  command.add_option("--rate", rate, "Convert .wav files to this sample rate; default: unchanged")->type_name("HZ")->group(group);
}

}  // namespace sdx::cli
