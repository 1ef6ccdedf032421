#pragma once
// Searching in time that grows with the text alone: std::string_view::find takes the product of both lengths for hostile texts.

#include <string_view>

#include "base/system/files/find_bytes.h"
#include "text/template/runtime.h"

namespace sdx::text::jinja {

inline std::size_t find_from(std::string_view text, std::string_view part, std::size_t from = 0) {
  if (from > text.size()) return std::string_view::npos;
  if (part.empty()) return from;
  const std::size_t found = find_bytes(text.substr(from), part);
  return found == std::string_view::npos ? found : from + found;
}

// Backwards there is no such search: the product counts as work.
inline std::size_t find_last(Runtime& rt, std::string_view text, std::string_view part) {
  rt.work(text.size() * (part.size() < 16 ? 1 : part.size() / 8));
  return text.rfind(part);
}

}  // namespace sdx::text::jinja
