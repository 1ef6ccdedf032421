#include "base/text/safe_name.h"

#include <algorithm>

#include "base/hash.h"
#include "base/text/utf8.h"

namespace sdx {

std::string unsafe_name(std::string_view name) {
  if (name.empty()) return "it is empty";
  if (name.size() > 1024) return "it is longer than 1024 bytes";
  if (std::any_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; })) {
    return "it holds a control character";
  }
  if (name.find('\\') != std::string_view::npos || name.find(':') != std::string_view::npos)
    return "it holds a backslash or colon";
  std::size_t at = 0;
  while (at <= name.size()) {
    const std::size_t slash = std::min(name.find('/', at), name.size());
    const std::string_view part = name.substr(at, slash - at);
    if (part.empty()) return at == 0 ? "it is absolute" : "it has an empty part";
    if (part == "." || part == "..") return "it may lead out of the folder";
    if (part.size() > kLongestName) return "a part of it is longer than 255 bytes";
    at = slash + 1;
  }
  return "";
}

std::string shortened_name(std::string_view name, std::size_t most) {
  if (name.size() <= most) return std::string(name);
  constexpr std::size_t kDigits = 8;
  const std::size_t cut = end_of_chars(name, most > kDigits + 1 ? most - kDigits - 1 : 0);
  return std::string(name.substr(0, cut)) + "~" + hash_text(name).substr(0, kDigits);
}

}  // namespace sdx
