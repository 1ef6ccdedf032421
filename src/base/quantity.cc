#include "base/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "base/text/ascii.h"

namespace sdx {
namespace {

using Unit = std::pair<std::string_view, double>;

// A number that is not negative, times the unit behind it.
std::optional<double> quantity(std::string_view text, std::span<const Unit> units) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !(number >= 0)) return std::nullopt;
  std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  const std::string unit = ascii_lower(rest);
  for (const auto& [name, factor] : units) {
    if (name == unit) return number * factor;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> size_from_text(std::string_view text) {
  static constexpr std::array<Unit, 14> kUnits{{{"", 1},
                                                {"b", 1},
                                                {"kb", 1e3},
                                                {"mb", 1e6},
                                                {"gb", 1e9},
                                                {"tb", 1e12},
                                                {"k", 1024},
                                                {"m", 1048576},
                                                {"g", 1073741824},
                                                {"t", 1099511627776},
                                                {"kib", 1024},
                                                {"mib", 1048576},
                                                {"gib", 1073741824},
                                                {"tib", 1099511627776}}};
  const std::optional<double> bytes = quantity(text, kUnits);
  if (!bytes || !(*bytes < 1e18)) return std::nullopt;
  return static_cast<std::uint64_t>(*bytes);
}

std::optional<std::chrono::milliseconds> time_from_text(std::string_view text) {
  static constexpr std::array<Unit, 5> kUnits{{{"", 1e3}, {"s", 1e3}, {"ms", 1}, {"m", 6e4}, {"min", 6e4}}};
  const std::optional<double> ms = quantity(text, kUnits);
  if (!ms || !(*ms <= 1e12)) return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::int64_t>(*ms));
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::clamp(std::ceil(seconds), 0.0, 1e9));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string time_text(double seconds) {
  if (seconds < 1) return fmt::format("{:.0f} ms", 1e3 * seconds);
  return seconds < 60 ? fmt::format("{:.1f} s", seconds) : duration_text(std::floor(seconds));
}

std::string size_text(double bytes) {
  constexpr std::array<const char*, 5> kUnits{"B", "KB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < kUnits.size(); ++unit) bytes /= 1000;
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

}  // namespace sdx
