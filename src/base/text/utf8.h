#pragma once
// UTF-8 as Unicode defines it (table 3-7): no overlong forms, no surrogates, nothing above U+10FFFF.

#include <cstddef>
#include <string>
#include <string_view>

#include "base/tools_api.h"

namespace sdx {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

constexpr bool is_code_point(char32_t value) noexcept { return value <= 0x10FFFF && (value < 0xD800 || value > 0xDFFF); }

struct CodePoint {
  char32_t value = 0;
  std::size_t bytes = 0;  // 0: no whole, valid character begins here
};

// The character that begins at `at` (< text.size()).
SDX_TOOLS_API CodePoint decode_utf8(std::string_view text, std::size_t at) noexcept;
SDX_TOOLS_API void append_utf8(std::string& to, char32_t value);

// The length of the longest beginning that is valid.
SDX_TOOLS_API std::size_t valid_utf8(std::string_view text) noexcept;
inline bool is_utf8(std::string_view text) noexcept { return valid_utf8(text) == text.size(); }
// The number of bytes at the end that begin an incomplete character: 0 to 3.
SDX_TOOLS_API std::size_t unfinished_utf8(std::string_view text) noexcept;

constexpr bool continues_char(char c) noexcept { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }
// Characters of valid text.
SDX_TOOLS_API std::size_t count_chars(std::string_view text) noexcept;
// The end of the longest beginning of at most `most` bytes that ends between two characters.
SDX_TOOLS_API std::size_t end_of_chars(std::string_view text, std::size_t most) noexcept;

// The number of bytes at the beginning, where no character begins, that one U+FFFD replaces: the longest beginning of a
// character, or one byte (Unicode, section 3.9, "maximal subparts"; the decoder of https://encoding.spec.whatwg.org does the
// same).
SDX_TOOLS_API std::size_t broken_utf8(std::string_view text) noexcept;
// Replaces bytes of `text` that are not UTF-8 by U+FFFD.
SDX_TOOLS_API std::string repair_utf8(std::string_view text);

}  // namespace sdx
