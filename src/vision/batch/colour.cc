#include "vision/batch/colour.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text/ascii.h"

namespace sdx::vision::batch {
namespace {

using Colour = std::array<std::uint8_t, 4>;

struct Named {
  std::string_view name;
  Colour colour;
};
constexpr Named kNamed[] = {{"black", {0, 0, 0, 255}},      {"white", {255, 255, 255, 255}}, {"grey", {128, 128, 128, 255}},
                            {"gray", {128, 128, 128, 255}}, {"red", {255, 0, 0, 255}},       {"green", {0, 128, 0, 255}},
                            {"blue", {0, 0, 255, 255}},     {"yellow", {255, 255, 0, 255}},  {"transparent", {0, 0, 0, 0}}};

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

std::optional<Colour> from_hex(std::string_view text) {
  if (std::any_of(text.begin(), text.end(), [](char c) { return digit(c) < 0; })) return std::nullopt;
  Colour out{0, 0, 0, 255};
  const std::size_t width = text.size() <= 4 ? 1 : 2;
  const std::size_t channels = text.size() / width;
  if (text.size() % width != 0 || channels < 3 || channels > 4) return std::nullopt;
  for (std::size_t i = 0; i < channels; ++i) {
    const int high = digit(text[i * width]), low = digit(text[i * width + width - 1]);
    out[i] = static_cast<std::uint8_t>(16 * high + low);
  }
  return out;
}

// The numbers of "name(a,b,c)", where the text has that form.
std::optional<std::vector<double>> numbers_of(std::string_view text, std::string_view name) {
  if (!text.starts_with(name) || !text.ends_with(')')) return std::nullopt;
  text.remove_prefix(name.size());
  text.remove_suffix(1);
  std::vector<double> out;
  while (true) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    double value = 0;
    const auto [next, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || !std::isfinite(value)) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(next - text.data()));
    out.push_back(value);
    while (text.starts_with('%') || text.starts_with(' ')) text.remove_prefix(1);
    if (text.empty()) return out;
    if (!text.starts_with(',')) return std::nullopt;
    text.remove_prefix(1);
  }
}

std::uint8_t level(double share) { return static_cast<std::uint8_t>(std::lround(255 * share)); }

std::optional<Colour> from_rgb(const std::vector<double>& v) {
  if (v.size() != 3 || std::any_of(v.begin(), v.end(), [](double x) { return x < 0 || x > 255; })) return std::nullopt;
  return Colour{level(v[0] / 255), level(v[1] / 255), level(v[2] / 255), 255};
}

std::optional<Colour> from_hsv(const std::vector<double>& v) {
  if (v.size() != 3 || v[0] < 0 || v[0] > 360 || v[1] < 0 || v[1] > 100 || v[2] < 0 || v[2] > 100) return std::nullopt;
  const double saturation = v[1] / 100, value = v[2] / 100;
  const auto channel = [&](double n) {
    const double k = std::fmod(n + v[0] / 60, 6);
    return level(value - value * saturation * std::max(0.0, std::min({k, 4 - k, 1.0})));
  };
  return Colour{channel(5), channel(3), channel(1), 255};
}

}  // namespace

std::array<std::uint8_t, 4> parse_colour(std::string_view text) {
  const std::string low = ascii_lower(text);
  std::optional<Colour> out;
  for (const Named& named : kNamed) {
    if (named.name == low) out = named.colour;
  }
  if (!out && low.starts_with('#')) out = from_hex(std::string_view(low).substr(1));
  if (!out) {
    if (const auto rgb = numbers_of(low, "rgb(")) out = from_rgb(*rgb);
    if (const auto hsv = numbers_of(low, "hsv(")) out = from_hsv(*hsv);
  }
  if (out) return *out;
  fail(ErrorCode::invalid_argument,
       "'{}' is not a colour; for example white, #ffcc00, rgb(255,204,0) with 0 to 255, or hsv(48,100,100) with degrees and per "
       "cent",
       text);
}

}  // namespace sdx::vision::batch
