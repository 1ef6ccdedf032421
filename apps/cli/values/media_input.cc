#include "cli/values/media_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <sdx/image.hpp>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/suggest.h"
#include "cli/command.h"
#include "cli/session_flags.h"
#include "media/model_input.h"
#include "media/preprocess.h"
#include "project/process.h"

namespace sdx::cli {
namespace {

// Parses "0.5,1,-3"; nullopt unless the text is a list of finite numbers.
std::optional<std::vector<float>> floats_from_text(std::string_view text) {
  std::vector<float> out;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    float v = 0;
    const auto [next, error] = std::from_chars(at, end, v);
    const bool whole = next == end || (*next == ',' && next + 1 != end);
    if (error != std::errc{} || !whole || !std::isfinite(v)) return std::nullopt;
    out.push_back(v);
    at = next == end ? end : next + 1;
  }
  return out;
}

// --mean and --std
std::vector<float> parse_channels(const std::string& text, const char* option) {
  const auto values = floats_from_text(text);
  if (!values || (values->size() != 1 && values->size() != 3)) {
    throw UsageError(
        fmt::format("{0} {1}: expected one number, or three, one per channel; for example {0} 0.485,0.456,0.406", option, text));
  }
  return *values;
}

std::vector<float> parse_deviation(const std::string& text) {
  std::vector<float> values = parse_channels(text, "--std");
  if (std::find(values.begin(), values.end(), 0.0F) == values.end()) return values;
  throw UsageError(fmt::format("--std {}: pixels are divided by it, so that it must not be 0", text));
}

// "1/255" is how scales are usually written.
float parse_scale(const std::string& text) {
  const std::string_view all = text;
  const auto slash = all.find('/');
  const auto top = floats_from_text(all.substr(0, slash));
  const auto bottom = slash == std::string::npos ? std::vector<float>{1} : floats_from_text(all.substr(slash + 1));
  if (!top || !bottom || top->size() != 1 || bottom->size() != 1 || bottom->front() == 0.0F || top->front() == 0.0F) {
    throw UsageError(fmt::format("--scale {}: expected a number or a fraction other than 0, for example 1/255", text));
  }
  const float scale = top->front() / bottom->front();
  if (!std::isfinite(scale) || scale == 0.0F) throw UsageError(fmt::format("--scale {}: that is beyond float32", text));
  return scale;
}

// Flag values come from the user: an argument error of the library is a usage error here.
template <class F>
auto usage(const char* option, F&& parse) {
  try {
    return parse();
  } catch (const Error& e) {
    throw UsageError(fmt::format("{}: {}", option, e.message()));
  }
}

int parse_fill(const std::string& text) {
  const std::optional<Shape> value = shape_from_text(text);
  if (!value || value->size() != 1 || value->front() > 255) {
    throw UsageError(fmt::format("--fill {}: expected a grey of 0 to 255", text));
  }
  return static_cast<int>(value->front());
}

}  // namespace

std::pair<int, int> parse_sides(const std::string& text, const char* option) {
  const std::optional<Shape> size = shape_from_text(text);
  const auto side = [](std::int64_t s) { return s >= 1 && s <= 65535; };
  if (!size || size->empty() || size->size() > 2 || !side(size->front()) || !side(size->back())) {
    throw UsageError(fmt::format("{} {}: expected WIDTHxHEIGHT, for example 640x480", option, text));
  }
  return {static_cast<int>(size->front()), static_cast<int>(size->back())};
}

namespace {

void say_scaling(const std::string& what, const ValueSpec* spec, const Preprocessing& p) {
  static bool said = false;  // once, not for each picture of a folder
  if (!media::scales_unasked(p, spec) || std::exchange(said, true)) return;
  note(fmt::format("note: {} is scaled to 0..1; choose with --normalize imagenet|0-1|-1-1|clip|none or --mean, --std, --scale",
                   what));
}

Value in_type_of(const ValueSpec* spec, const Tensor& t) {
  return spec == nullptr || spec->dtype == DataType::undefined ? t : convert_elements(t, spec->dtype, spec->name);
}

}  // namespace

Value image_input(const std::string& path, const ValueSpec* spec, const InputFlags& flags) {
  flags.used->pictures = true;
  const Preprocessing p = flags.preprocessing(spec != nullptr ? spec->name : "");
  Tensor t = media::read_picture(path, spec, p);
  say_scaling("'" + path + "'", spec, p);
  return t;
}

Value image_input(std::span<const std::byte> bytes, const ValueSpec* spec, const InputFlags& flags) {
  flags.used->pictures = true;
  const Preprocessing p = flags.preprocessing(spec != nullptr ? spec->name : "");
  Tensor t = media::to_tensor(media::decode_image(bytes), p, spec);
  say_scaling("the picture", spec, p);
  return t;
}

Value sound_input(const std::string& path, const ValueSpec* spec, const InputFlags& flags) {
  flags.used->sound = true;
  return in_type_of(spec, media::read_sound(path, spec, flags.preprocessing(spec != nullptr ? spec->name : "")));
}

Value sound_input(std::span<const std::byte> bytes, const ValueSpec* spec, const InputFlags& flags) {
  flags.used->sound = true;
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
    p.mean = mean.empty() ? std::vector<float>{} : parse_channels(mean, "--mean");
    p.deviation = deviation.empty() ? std::vector<float>{} : parse_deviation(deviation);
  }
  if (!fit.empty()) p.fit = usage("--fit", [&] { return media::parse_fit(fit); });
  if (!filter.empty()) p.filter = usage("--filter", [&] { return media::parse_filter(filter); });
  if (!layout.empty()) p.layout = usage("--layout", [&] { return media::parse_layout(layout); });
  if (!color.empty()) p.color = usage("--color", [&] { return media::parse_color(color); });
  if (!normalize.empty() && normalize != "custom") {
    usage("--normalize", [&] { return media::normalization(normalize, media::Color::rgb); });
  }
  if (!fill.empty() && p.fit != Preprocessing::Fit::letterbox && p.fit != Preprocessing::Fit::letterbox_corner) {
    throw UsageError("--fill is the grey around a letterboxed picture: add --fit letterbox");
  }
  return p;
}

std::string InputFlags::without_effect() const {
  std::vector<std::string> typed;
  const auto list = [&](const char* option, const std::string& text) {
    if (!text.empty()) typed.emplace_back(option);
  };
  if (!used->pictures) {
    list("--resize", resize);
    list("--fit", fit);
    list("--filter", filter);
    list("--crop", crop);
    list("--fill", fill);
    list("--layout", layout);
    list("--color", color);
    list("--normalize", normalize);
    list("--mean", mean);
    list("--std", deviation);
    list("--scale", scale);
  }
  const bool idle_rate = rate != 0 && !used->sound;
  if (typed.empty()) return idle_rate ? "the sample rate has no effect: no input is sound" : "";
  if (idle_rate) return join(typed) + " and the sample rate have no effect: no input is a picture or sound";
  return fmt::format("{} {} no effect: no input is a picture", join(typed), typed.size() == 1 ? "has" : "have");
}

void InputFlags::add_to(const Command& command) {
  command
      .add_option(
          "-i,--input", inputs,
          "NAME=VALUE: JSON, @file.json, or a .npy, .npz, .pb, image or sound file; a model with one input needs no NAME=")
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
  command.add_option("--fit", fit, "stretch, letterbox, letterbox-corner or crop")
      ->type_name("FIT")
      ->completed_by({"stretch", "letterbox", "letterbox-corner", "crop"})
      ->group(group);
  command.add_option("--filter", filter, "bilinear, bicubic, area or nearest")
      ->type_name("FILTER")
      ->completed_by({"bilinear", "bicubic", "area", "nearest"})
      ->group(group);
  command.add_option("--crop", crop, "Crop this size from the middle after resizing")->type_name("WxH")->group(group);
  command.add_option("--fill", fill, "Grey level around a letterboxed picture, 0 to 255 (114)")->type_name("GREY")->group(group);
  command.add_option("--layout", layout, "nchw, nhwc, chw, hwc or hw; default: the layout that the input declares")
      ->type_name("LAYOUT")
      ->completed_by({"nchw", "nhwc", "chw", "hwc", "hw"})
      ->group(group);
  command.add_option("--color", color, "rgb, bgr or gray")
      ->type_name("ORDER")
      ->completed_by({"rgb", "bgr", "gray"})
      ->group(group);
  command.add_option("--normalize", normalize, "imagenet, 0-1, -1-1, clip or none (0 to 255)")
      ->type_name("NAME")
      ->completed_by({"imagenet", "0-1", "-1-1", "clip", "none"})
      ->group(group);
  command.add_option("--mean", mean, "Subtracted from each channel")->type_name("A,B,C")->group(group);
  command.add_option("--std", deviation, "Divisor of each channel")->type_name("A,B,C")->group(group);
  command.add_option("--scale", scale, "Factor applied to pixels before --mean and --std, for example 1/255")
      ->type_name("X")
      ->group(group);
  command.add_option("--rate", rate, "Convert sound to this sample rate; default: unchanged")
      ->range(1, 768000)
      ->type_name("HZ")
      ->group(group);
}

}  // namespace sdx::cli
