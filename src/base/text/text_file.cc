#include "base/text/text_file.h"

#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "base/text/utf8.h"

namespace sdx {
namespace {

// Halves of pairs that stand alone become U+FFFD.
std::string from_utf16(std::string_view bytes, bool big) {
  if (bytes.size() % 2 != 0) fail(ErrorCode::invalid_argument, "the text is UTF-16 and ends within a letter");
  const auto unit = [&](std::size_t at) -> std::uint32_t {
    if (at + 2 > bytes.size()) return 0;
    const auto a = static_cast<unsigned char>(bytes[at]), b = static_cast<unsigned char>(bytes[at + 1]);
    return big ? std::uint32_t{a} << 8 | b : std::uint32_t{b} << 8 | a;
  };
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += 2) {
    const std::uint32_t first = unit(at), second = unit(at + 2);
    if (first < 0xD800 || first > 0xDFFF) {
      append_utf8(out, first);
    } else if (first < 0xDC00 && second >= 0xDC00 && second <= 0xDFFF) {
      append_utf8(out, 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00));
      at += 2;
    } else {
      append_utf8(out, 0xFFFD);
    }
  }
  return out;
}

}  // namespace

std::string to_utf8(std::string bytes) {
  const std::string_view text = bytes;
  if (text.starts_with("\xEF\xBB\xBF")) return bytes.substr(3);
  if (text.starts_with("\xFF\xFE")) return from_utf16(text.substr(2), false);
  if (text.starts_with("\xFE\xFF")) return from_utf16(text.substr(2), true);
  const bool two = text.size() >= 4 && text.size() % 2 == 0;
  if (two && text[0] != '\0' && text[1] == '\0' && text[2] != '\0') return from_utf16(text, false);
  if (two && text[0] == '\0' && text[1] != '\0' && text[2] == '\0') return from_utf16(text, true);
  return bytes;
}

std::optional<char> take_separator_line(std::string_view& csv) {
  const std::size_t end = csv.find_first_of("\r\n");
  std::string_view line = csv.substr(0, end);
  if (line.size() >= 2 && line.front() == '"' && line.back() == '"') line = line.substr(1, line.size() - 2);
  if (line.size() != 5 || line.substr(1, 3) != "ep=" || (line[0] != 's' && line[0] != 'S')) return std::nullopt;
  const char separator = line[4];
  csv.remove_prefix(end == std::string_view::npos ? csv.size() : end);
  return separator;
}

}  // namespace sdx
