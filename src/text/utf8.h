#pragma once
// UTF-8 as Unicode defines it (table 3-7): no overlong forms, no surrogates, nothing above U+10FFFF.

#include <cstddef>
#include <string>
#include <string_view>

namespace sdx::text {

struct CodePoint {
  char32_t value = 0;
  std::size_t bytes = 0;  // 0: no whole, valid character begins here
};

// The character that begins at `at` (< text.size()).
CodePoint decode_utf8(std::string_view text, std::size_t at) noexcept;
void append_utf8(std::string& to, char32_t value);

// The length of the longest beginning that is valid.
std::size_t valid_utf8(std::string_view text) noexcept;
// How many bytes at the end are the beginning of a character that more bytes could complete: 0 to 3.
std::size_t unfinished_utf8(std::string_view text) noexcept;

}  // namespace sdx::text
