#include <array>
#include <charconv>

#include <sdx/faces.hpp>

#include "base/error.h"
#include "vision/enhance/steps.h"

namespace sdx::faces {
namespace {

struct Number {
  std::string_view name;
  double Enhance::*value;
  double low, high;
};

constexpr std::array kNumbers{Number{"exposure", &Enhance::exposure, -2, 2},
                              Number{"brightness", &Enhance::brightness, 0.5, 2},
                              Number{"contrast", &Enhance::contrast, 0.5, 2},
                              Number{"saturation", &Enhance::saturation, 0, 2.5},
                              Number{"smooth_skin", &Enhance::smooth_skin, 0, 1},
                              Number{"sharpen", &Enhance::sharpen, 0, 2},
                              Number{"sharpen_radius", &Enhance::sharpen_radius, 0.3, 10},
                              Number{"blur_background", &Enhance::blur_background, 0, 50}};

struct Switch {
  std::string_view name;
  bool Enhance::*value;
};

constexpr std::array kSwitches{Switch{"auto_colour", &Enhance::auto_colour}, Switch{"red_eye", &Enhance::red_eye}};

bool find_preset(std::string_view name, Enhance& out) {
  if (name == "none") {
    out = {};
  } else if (name == "natural") {
    out = {.auto_colour = true, .red_eye = true, .contrast = 1.05, .saturation = 1.05, .smooth_skin = 0.2, .sharpen = 0.3};
  } else if (name == "vivid") {
    out = {.auto_colour = true, .red_eye = true, .exposure = 0.1, .contrast = 1.15, .saturation = 1.3, .sharpen = 0.6};
  } else if (name == "professional") {
    out = {.auto_colour = true,
           .red_eye = true,
           .exposure = 0.1,
           .contrast = 1.1,
           .saturation = 1.05,
           .smooth_skin = 0.5,
           .sharpen = 0.5,
           .blur_background = 8};
  } else {
    return false;
  }
  return true;
}

[[noreturn]] void unknown(std::string_view item) {
  std::string names;
  for (const Switch& s : kSwitches) names += std::string(names.empty() ? "" : ", ") + std::string(s.name);
  for (const Number& n : kNumbers) names += ", " + std::string(n.name);
  fail(ErrorCode::invalid_argument,
       "'{}' is not an enhancement; expected none, natural, vivid or professional, then NAME=VALUE with one of {}", item, names);
}

void set_switch(const Switch& s, std::string_view value, Enhance& out) {
  if (value == "true" || value == "1" || value == "yes" || value == "on") {
    out.*s.value = true;
  } else if (value == "false" || value == "0" || value == "no" || value == "off") {
    out.*s.value = false;
  } else {
    fail(ErrorCode::invalid_argument, "enhancement {}={}: expected true or false", s.name, value);
  }
}

void set_number(const Number& n, std::string_view text, Enhance& out) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= n.low && value <= n.high)) {
    fail(ErrorCode::invalid_argument, "enhancement {}={}: expected a number from {} to {}", n.name, text, n.low, n.high);
  }
  out.*n.value = value;
}

void set(std::string_view item, Enhance& out) {
  const std::size_t equals = item.find('=');
  const std::string_view name = item.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? std::string_view("true") : item.substr(equals + 1);
  for (const Switch& s : kSwitches) {
    if (s.name == name) return set_switch(s, value, out);
  }
  for (const Number& n : kNumbers) {
    if (n.name == name && equals != std::string_view::npos) return set_number(n, value, out);
  }
  unknown(item);
}

}  // namespace

Enhance parse_enhance(std::string_view text) {
  Enhance out;
  for (bool first = true; first || !text.empty(); first = false) {
    const std::size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    if (!first || !find_preset(item, out)) set(item, out);
  }
  return out;
}

}  // namespace sdx::faces

namespace sdx::vision {

void check_enhance(const faces::Enhance& settings) {
  for (const faces::Number& n : faces::kNumbers) {
    const double value = settings.*n.value;
    if (value >= n.low && value <= n.high) continue;
    fail(ErrorCode::invalid_argument, "enhancement {} is {}; expected {} to {}", n.name, value, n.low, n.high);
  }
}

}  // namespace sdx::vision
