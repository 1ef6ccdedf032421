#include "vision/page/crop_names.h"

#include <fmt/format.h>

#include "base/text/utf8.h"

namespace sdx::faces::page {

std::string harmless_name(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const auto u = static_cast<unsigned char>(c);
    const bool bad = u < 0x20 || u == 0x7f || std::string_view("/\\:*?\"<>|").find(c) != std::string_view::npos;
    out.push_back(bad ? '_' : c);
  }
  out.resize(end_of_chars(out, 200));
  for (char& c : out) {
    if (c != '.') break;
    c = '_';
  }
  return out.empty() ? "picture" : out;
}

std::string unique_name(std::string_view name, std::unordered_set<std::string>& taken) {
  std::string unique = harmless_name(name);
  const std::size_t dot = unique.rfind('.');
  const std::string stem = unique.substr(0, dot);
  const std::string ending = dot == std::string::npos ? "" : unique.substr(dot);
  for (int n = 2; !taken.insert(unique).second; ++n) unique = fmt::format("{}-{}{}", stem, n, ending);
  return unique;
}

}  // namespace sdx::faces::page
