#include "cli/media_input.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "cli/command.h"
#include "cli/session_flags.h"
#include "media/wav.h"

namespace sdx::cli {
namespace {

using media::Color;
using media::Layout;
using media::Preprocess;

std::vector<float> parse_floats(const std::string& text, const char* option) {
  std::vector<float> out;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    float v = 0;
    const auto [next, error] = std::from_chars(at, end, v);
    if (error != std::errc{} || (next != end && *next != ',')) {
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
  return top[0] / bottom[0];
}

// Which axes are colour, height and width: the axis of 1 or 3 is colour; where none is fixed, the first.
Layout guess_layout(const ValueSpec* spec) {
  if (spec == nullptr || !spec->has_shape) return Layout::nchw;
  const Shape& s = spec->shape;
  const auto colours = [](std::int64_t d) { return d == 1 || d == 3; };
  if (s.size() == 2) return Layout::hw;
  if (s.size() == 3) return colours(s[2]) && !colours(s[0]) ? Layout::hwc : Layout::chw;
  return s.size() == 4 && colours(s[3]) && !colours(s[1]) ? Layout::nhwc : Layout::nchw;
}

struct Axes {
  std::int64_t channels = -1, height = -1, width = -1;
};

Axes axes_of(const ValueSpec* spec, Layout layout) {
  Axes a;
  if (spec == nullptr || !spec->has_shape) return a;
  const Shape& s = spec->shape;
  if (layout == Layout::nchw && s.size() == 4) return {s[1], s[2], s[3]};
  if (layout == Layout::nhwc && s.size() == 4) return {s[3], s[1], s[2]};
  if (layout == Layout::chw && s.size() == 3) return {s[0], s[1], s[2]};
  if (layout == Layout::hwc && s.size() == 3) return {s[2], s[0], s[1]};
  if (layout == Layout::hw && s.size() == 2) return {1, s[0], s[1]};
  return a;
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

void set_size(Preprocess& p, const InputFlags& flags, const Axes& axes) {
  if (!flags.resize.empty()) {
    const Shape size = parse_shape(flags.resize);
    if (size.empty() || size.size() > 2 || size[0] < 1 || size[0] > 65535 || size.back() < 1 || size.back() > 65535) {
      throw UsageError(fmt::format("--resize {}: expected WIDTHxHEIGHT, for example 640x480", flags.resize));
    }
    p.width = static_cast<int>(size[0]);
    p.height = static_cast<int>(size.back());
    return;
  }
  if (axes.width > 0 && axes.width <= 65535) p.width = static_cast<int>(axes.width);
  if (axes.height > 0 && axes.height <= 65535) p.height = static_cast<int>(axes.height);
}

void set_values(Preprocess& p, const InputFlags& flags, const std::string& path) {
  const bool own = !flags.mean.empty() || !flags.deviation.empty() || !flags.scale.empty();
  std::string normalize = flags.normalize;
  if (normalize.empty()) normalize = own || !is_floating(p.dtype) ? "none" : "0-1";
  usage([&] { set_normalization(p, normalize); });
  if (flags.normalize.empty() && !own && is_floating(p.dtype)) {
    note(fmt::format(
        "note: '{}' is scaled to 0..1; choose with --normalize imagenet|0-1|-1-1|clip|none or --mean, --std, --scale", path));
  }
  if (!flags.scale.empty()) p.scale = parse_scale(flags.scale);
  if (!flags.mean.empty()) p.mean = parse_floats(flags.mean, "--mean");
  if (!flags.deviation.empty()) p.deviation = parse_floats(flags.deviation, "--std");
}

}  // namespace

Value image_input(const std::string& path, const ValueSpec* spec, const InputFlags& flags) {
  Preprocess p;
  p.layout = flags.layout.empty() ? guess_layout(spec) : usage([&] { return media::parse_layout(flags.layout); });
  const Axes axes = axes_of(spec, p.layout);
  p.color = axes.channels == 1 ? Color::gray : Color::rgb;
  if (!flags.color.empty()) p.color = usage([&] { return media::parse_color(flags.color); });
  p.fit = usage([&] { return media::parse_fit(flags.fit); });
  p.filter = usage([&] { return media::parse_filter(flags.filter); });
  if (spec != nullptr && spec->dtype != DataType::undefined) p.dtype = spec->dtype;
  set_size(p, flags, axes);
  set_values(p, flags, path);
  return media::to_tensor(media::read_image(path), p);
}

Value sound_input(const std::string& path, const ValueSpec* spec, const InputFlags& flags) {
  const media::Sound sound = media::read_wav(path);
  Tensor t = media::to_tensor(sound, flags.rate);
  if (spec == nullptr) return t;
  const std::size_t rank = spec->has_shape ? spec->shape.size() : 2;
  if (rank >= 1 && rank <= 4) {
    Shape shape(rank, 1);
    shape.back() = t.size();
    t = t.reshaped(shape);
  }
  return spec->dtype == DataType::undefined ? t : convert_elements(t, spec->dtype, spec->name);
}

InputFlags InputFlags::for_input(const std::string& name) const {
  InputFlags out = *this;
  if (project == nullptr) return out;
  const auto it = std::find_if(project->inputs.begin(), project->inputs.end(), [&](const auto& i) { return i.name == name; });
  const Preprocessing& p = it == project->inputs.end() ? project->preprocessing : it->preprocessing;
  const auto typed = [&](const char* option) { return command_ != nullptr && command_->count(option) > 0; };
  if (resize.empty() && p.width > 0) out.resize = fmt::format("{}x{}", p.width, p.height);
  if (!typed("--fit")) out.fit = p.fit;
  if (!typed("--filter")) out.filter = p.filter;
  if (layout.empty()) out.layout = p.layout;
  if (color.empty()) out.color = p.color;
  if (rate == 0) out.rate = p.sample_rate;
  // A typed normalisation replaces the file's as a whole: its parts mean nothing beside another one's.
  if (typed("--normalize") || typed("--mean") || typed("--std") || typed("--scale")) return out;
  if (p.normalize != "custom") out.normalize = p.normalize;
  if (p.scale) out.scale = fmt::format("{}", *p.scale);
  out.mean = fmt::format("{}", fmt::join(p.mean, ","));
  out.deviation = fmt::format("{}", fmt::join(p.deviation, ","));
  return out;
}

void InputFlags::add_to(CLI::App& command) {
  command_ = &command;
  command
      .add_option("-i,--input", inputs,
                  "NAME=VALUE: JSON, @file.json, or a .npy, .npz, .pb, image or .wav file; a model with one input needs no NAME=")
      ->type_name("INPUT")
      ->allow_extra_args(false);
  command.add_option("-f,--file", files, "All inputs from a .json or .npz file")->type_name("FILE")->allow_extra_args(false);
  command.add_flag("--random", random, "Made-up values for the inputs that are not given");
  command.add_option("--seed", seed, "Of --random")->type_name("N");
  command.add_option("--shape", shapes, "Shape of a made-up input, for example data=1x3x224x224")
      ->type_name("NAME=SHAPE")
      ->allow_extra_args(false);
  const char* group = "Images and sound";
  command.add_option("--resize", resize, "Size of the image; default: what the input declares")->type_name("WxH")->group(group);
  command.add_option("--fit", fit, "stretch, letterbox, letterbox-corner or crop")->type_name("FIT")->group(group);
  command.add_option("--filter", filter, "bilinear, bicubic, area or nearest")->type_name("FILTER")->group(group);
  command.add_option("--layout", layout, "nchw, nhwc, chw, hwc or hw; default: what the input declares")
      ->type_name("LAYOUT")
      ->group(group);
  command.add_option("--color", color, "rgb, bgr or gray")->type_name("ORDER")->group(group);
  command.add_option("--normalize", normalize, "imagenet, 0-1, -1-1, clip or none (0 to 255)")->type_name("NAME")->group(group);
  command.add_option("--mean", mean, "Subtracted, for each channel")->type_name("A,B,C")->group(group);
  command.add_option("--std", deviation, "Divided by, for each channel")->type_name("A,B,C")->group(group);
  command.add_option("--scale", scale, "Multiplies the pixel before --mean and --std, for example 1/255")
      ->type_name("X")
      ->group(group);
  command.add_option("--rate", rate, "Samples a second that a .wav is converted to; default: as it is")
      ->type_name("HZ")
      ->group(group);
}

}  // namespace sdx::cli
