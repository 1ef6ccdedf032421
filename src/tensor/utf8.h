#pragma once
// UTF-8, as far as file formats need it (RFC 3629: no surrogates, no overlong forms, nothing above U+10FFFF).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sdx {

// False, and nothing appended, for surrogates and values above U+10FFFF.
inline bool append_utf8(std::string& out, std::uint32_t code) {
  if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return false;
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
  return true;
}

// The code point at `at`, which is moved behind it; nullopt (`at` moved by one byte) where the text is not UTF-8.
inline std::optional<std::uint32_t> next_utf8(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::uint32_t lead = byte(at);
  const std::size_t length = lead < 0x80 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  constexpr std::uint32_t kLowest[] = {0, 0, 0x80, 0x800, 0x10000};
  std::uint32_t code = length == 1 ? lead : lead & (0x7Fu >> length);
  bool ok = lead < 0xF8 && (lead < 0x80 || lead >= 0xC0) && at + length <= text.size();
  for (std::size_t i = 1; ok && i < length; ++i) {
    ok = (byte(at + i) & 0xC0) == 0x80;
    code = code << 6 | (byte(at + i) & 0x3Fu);
  }
  ok = ok && code >= kLowest[length] && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
  at += ok ? length : 1;
  return ok ? std::optional(code) : std::nullopt;
}

}  // namespace sdx
