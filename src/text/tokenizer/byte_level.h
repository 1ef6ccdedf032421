#pragma once
// GPT-2's way to write bytes as characters that can be seen: printable ones of Latin-1 stand for themselves, the other 68 for
// U+0100 and following.

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace sdx::text {

// The character of each byte; all are below U+0144.
const std::array<char32_t, 256>& byte_chars() noexcept;
// -1: the character stands for no byte.
int byte_of_char(char32_t c) noexcept;

void append_byte_char(std::string& to, unsigned char byte);
// The bytes that byte-level text stands for; nothing where a character stands for none.
std::optional<std::string> bytes_of_text(std::string_view text);

}  // namespace sdx::text
