#include "text/tokenizer/byte_level.h"

#include "base/text/utf8.h"
#include "text/unicode/unicode.h"

namespace sdx::text {
namespace {

constexpr bool shows_itself(unsigned b) { return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE; }

constexpr std::array<char32_t, 256> make_chars() {
  std::array<char32_t, 256> chars{};
  char32_t next = 256;
  for (unsigned b = 0; b < 256; ++b) chars[b] = shows_itself(b) ? b : next++;
  return chars;
}
constexpr std::array<char32_t, 256> kChars = make_chars();

constexpr std::array<std::int16_t, 0x144> make_bytes() {
  std::array<std::int16_t, 0x144> bytes{};
  for (auto& b : bytes) b = -1;
  for (unsigned b = 0; b < 256; ++b) bytes[kChars[b]] = static_cast<std::int16_t>(b);
  return bytes;
}
constexpr std::array<std::int16_t, 0x144> kBytes = make_bytes();

}  // namespace

const std::array<char32_t, 256>& byte_chars() noexcept { return kChars; }

int byte_of_char(char32_t c) noexcept { return c < kBytes.size() ? kBytes[c] : -1; }

void append_byte_char(std::string& to, unsigned char byte) { append_utf8(to, kChars[byte]); }

std::optional<std::string> bytes_of_text(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const int byte = byte_of_char(next_char(text, at));
    if (byte < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

}  // namespace sdx::text
