#include "base/system/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace sdx {
namespace {

bool is_plain(unsigned char c) { return (c >= 0x20 && c < 0x7F) || c == '\n' || c == '\t'; }

// A letter of valid UTF-8.
char32_t code_of(std::string_view letter) {
  constexpr unsigned char kFirst[] = {0, 0x7F, 0x1F, 0x0F, 0x07};  // the bits of the first byte, by the number of bytes
  char32_t code = static_cast<unsigned char>(letter[0]) & kFirst[letter.size()];
  for (const char c : letter.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3F);
  return code;
}

// Terminals take U+0080 to U+009F for controls, too. U+2028 and U+2029 end lines. The others change the order in which letters
// are shown, so that a name reads as another one (Unicode's property Bidi_Control).
bool deceives(char32_t code) {
  const bool control = code < 0x20 || (code >= 0x7F && code < 0xA0);
  const bool line = code == 0x2028 || code == 0x2029;
  const bool direction = code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
                         (code >= 0x2066 && code <= 0x2069);
  return control || line || direction;
}

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
    const std::string_view letter = text.substr(at, bytes);
    const char32_t code = code_of(letter);
    if (deceives(code)) {
      out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(code));
    } else {
      out += letter;
    }
    at += bytes;
  }
  return out;
}

std::string one_line(std::string_view text) {
  std::string out = printable(text);
  for (std::size_t at = 0; (at = out.find('\n', at)) != std::string::npos; at += 2) out.replace(at, 1, "\\n");
  return out;
}

}  // namespace sdx
