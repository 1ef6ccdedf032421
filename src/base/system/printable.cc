#include "base/system/printable.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/text/utf8.h"

namespace sdx {
namespace {

bool is_plain(unsigned char c) { return (c >= 0x20 && c < 0x7F) || c == '\n' || c == '\t'; }

// Terminals treat U+0080 to U+009F as controls, too. U+2028 and U+2029 end lines. The others change the order in which letters
// are shown, so that a name reads as another one (Unicode's property Bidi_Control).
bool deceives(char32_t code) {
  const bool control = code < 0x20 || (code >= 0x7F && code < 0xA0);
  const bool line = code == 0x2028 || code == 0x2029;
  const bool direction = code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
                         (code >= 0x2066 && code <= 0x2069);
  return control || line || direction;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (is_plain(c)) {
      out += text[at++];
      continue;
    }
    const auto [code, bytes] = decode_utf8(text, at);
    if (bytes == 0) {
      out += fmt::format("\\x{:02x}", c);
      ++at;
      continue;
    }
    if (deceives(code)) {
      out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(code));
    } else {
      out += text.substr(at, bytes);
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
