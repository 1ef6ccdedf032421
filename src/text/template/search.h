#pragma once
// Searching in time that grows with the text alone: std::string_view::find takes the product of both lengths for hostile texts.

#include <cstring>
#include <string_view>

#include "text/template/runtime.h"

namespace sdx::text::jinja {

inline std::size_t find_from(std::string_view text, std::string_view part, std::size_t from = 0) {
  if (from > text.size()) return std::string_view::npos;
  if (part.empty()) return from;
  const void* found = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return found ? static_cast<std::size_t>(static_cast<const char*>(found) - text.data()) : std::string_view::npos;
}

// Backwards there is no such search: the product counts as work.
inline std::size_t find_last(Runtime& rt, std::string_view text, std::string_view part) {
  rt.work(text.size() * (part.size() < 16 ? 1 : part.size() / 8));
  return text.rfind(part);
}

}  // namespace sdx::text::jinja
