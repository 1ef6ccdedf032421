#include "base/system/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace sdx {
namespace {

bool is_plain(unsigned char c) { return (c >= 0x20 && c < 0x7F) || c == '\n' || c == '\t'; }

}  // namespace

std::size_t utf8_letter(std::string_view text) noexcept {
  if (text.empty()) return 0;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t bytes = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  if (bytes == 0 || bytes > text.size()) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Longer than need be, a half of a UTF-16 pair, beyond the last code point.
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F)) return 0;
  if ((first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F)) return 0;
  return bytes;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (is_plain(c)) {
      out += text[at++];
      continue;
    }
    const std::size_t bytes = utf8_letter(text.substr(at));
    if (bytes == 0) {
      out += fmt::format("\\x{:02x}", c);
      ++at;
      continue;
    }
    const unsigned code = bytes == 1 ? c : static_cast<unsigned char>(text[at + 1]);
    const bool control = bytes == 1 || (c == 0xC2 && code < 0xA0);  // U+0080 to U+009F: terminals take them for controls, too
    if (control) {
      out += fmt::format("\\u{:04x}", code);
    } else {
      out += text.substr(at, bytes);
    }
    at += bytes;
  }
  return out;
}

}  // namespace sdx
