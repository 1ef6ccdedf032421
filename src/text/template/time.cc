// strftime as Python's datetime has it on Linux, with English names. Systems' own functions differ: Windows' lacks %e, %T and
// flags.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

#include "text/template/runtime.h"

namespace sdx::text::jinja {
namespace {

constexpr std::array<std::string_view, 7> kDays{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> kMonths{"January", "February", "March",     "April",   "May",      "June",
                                                   "July",    "August",   "September", "October", "November", "December"};

int years(const std::tm& t) { return t.tm_year + 1900; }
int twelve(int hour) { return hour % 12 == 0 ? 12 : hour % 12; }
bool is_leap(int year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

// The week of the year whose first day is that of the year's first Sunday (first = 0) or Monday (1); 0 before it.
int week_from(const std::tm& t, int first) { return (t.tm_yday + 7 - (t.tm_wday + 7 - first) % 7) / 7; }

struct IsoWeek {
  int year = 0, week = 0;
};

// Weeks begin on Mondays and belong to the year that has their Thursday.
IsoWeek iso_week(const std::tm& t) {
  const int thursday = t.tm_yday + 3 - (t.tm_wday + 6) % 7;
  const int year = years(t), days = 365 + (is_leap(year) ? 1 : 0);
  if (thursday < 0) return {year - 1, (thursday + 365 + (is_leap(year - 1) ? 1 : 0)) / 7 + 1};
  if (thursday >= days) return {year + 1, 1};
  return {year, thursday / 7 + 1};
}

struct Number {
  long long value = 0;
  int width = 1;
  char pad = '0';
};

std::optional<Number> number_of(char code, const std::tm& t) {
  switch (code) {
    case 'C': return Number{years(t) / 100, 2};
    case 'd': return Number{t.tm_mday, 2};
    case 'e': return Number{t.tm_mday, 2, ' '};
    case 'g': return Number{iso_week(t).year % 100, 2};
    case 'G': return Number{iso_week(t).year};
    case 'H': return Number{t.tm_hour, 2};
    case 'I': return Number{twelve(t.tm_hour), 2};
    case 'j': return Number{t.tm_yday + 1, 3};
    case 'k': return Number{t.tm_hour, 2, ' '};
    case 'l': return Number{twelve(t.tm_hour), 2, ' '};
    case 'm': return Number{t.tm_mon + 1, 2};
    case 'M': return Number{t.tm_min, 2};
    case 's': {
      std::tm copy = t;
      return Number{static_cast<long long>(std::mktime(&copy))};
    }
    case 'S': return Number{t.tm_sec, 2};
    case 'u': return Number{t.tm_wday == 0 ? 7 : t.tm_wday};
    case 'U': return Number{week_from(t, 0), 2};
    case 'V': return Number{iso_week(t).week, 2};
    case 'w': return Number{t.tm_wday};
    case 'W': return Number{week_from(t, 1), 2};
    case 'y': return Number{years(t) % 100, 2};
    case 'Y': return Number{years(t)};
    default: return std::nullopt;
  }
}

std::string written(Number n, std::string_view flags) {
  for (const char flag : flags) {
    if (flag == '-') n.width = 1;
    if (flag == '_') n.pad = ' ';
    if (flag == '0') n.pad = '0';
  }
  const std::string digits = std::to_string(n.value);
  const auto width = static_cast<std::size_t>(n.width);
  return std::string(width - std::min(width, digits.size()), n.pad) + digits;
}

std::optional<std::string_view> word_of(char code, const std::tm& t) {
  switch (code) {
    case 'a': return kDays[static_cast<std::size_t>(t.tm_wday)].substr(0, 3);
    case 'A': return kDays[static_cast<std::size_t>(t.tm_wday)];
    case 'b':
    case 'h': return kMonths[static_cast<std::size_t>(t.tm_mon)].substr(0, 3);
    case 'B': return kMonths[static_cast<std::size_t>(t.tm_mon)];
    case 'p': return t.tm_hour < 12 ? "AM" : "PM";
    case 'P': return t.tm_hour < 12 ? "am" : "pm";
    case 'n': return "\n";
    case 't': return "\t";
    case '%': return "%";
    default: return std::nullopt;
  }
}

// What is short for other codes.
std::string_view parts_of(char code) {
  switch (code) {
    case 'c': return "%a %b %e %H:%M:%S %Y";
    case 'D':
    case 'x': return "%m/%d/%y";
    case 'F': return "%Y-%m-%d";
    case 'r': return "%I:%M:%S %p";
    case 'R': return "%H:%M";
    case 'T':
    case 'X': return "%H:%M:%S";
    default: return "";
  }
}

std::string cased(std::string text, bool upper) {
  for (char& c : text) {
    if (upper && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (!upper && c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

std::string field(const Now& now, char code, std::string_view flags) {
  const bool upper = flags.find('^') != std::string_view::npos, other = flags.find('#') != std::string_view::npos;
  if (code == 'f') return fmt::format("{:06}", now.microseconds);
  if (code == 'z' || code == 'Z') return "";  // a time without a zone
  if (const auto number = number_of(code, now.time)) return written(*number, flags);
  if (const auto word = word_of(code, now.time)) {
    if (other) return cased(std::string(*word), code != 'p');
    return upper ? cased(std::string(*word), code != 'P') : std::string(*word);
  }
  if (const std::string_view parts = parts_of(code); !parts.empty()) {
    const std::string text = format_time(now, parts);
    return upper ? cased(text, true) : text;
  }
  return '%' + std::string(flags) + code;
}

}  // namespace

std::string format_time(const Now& now, std::string_view format) {
  if (format.size() > 10000) value_error("strftime_now: a format of more than 10000 bytes");
  std::string result;
  for (std::size_t at = 0; at < format.size(); at++) {
    if (format[at] != '%' || at + 1 >= format.size()) {
      result += format[at];
      continue;
    }
    std::string flags;
    for (at++; at < format.size() && std::string_view("-_0^#").find(format[at]) != std::string_view::npos && flags.size() < 3;
         at++)
      flags += format[at];
    if (at >= format.size()) {
      result += '%' + flags;
      break;
    }
    result += field(now, format[at], flags);
  }
  return result;
}

}  // namespace sdx::text::jinja
