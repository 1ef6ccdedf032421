#pragma once
// Unicode's properties of characters, as Hugging Face's tokenizers need them, and its normalization forms with the changes that
// they make.

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/text/utf8.h"

namespace sdx::text {

// The character at `at` of text that is known to be valid UTF-8; moves `at` behind it.
inline char32_t next_char(std::string_view text, std::size_t& at) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[at + i])); };
  const char32_t first = byte(0);
  if (first < 0x80) return ++at, first;
  char32_t value;
  if (first < 0xE0) {
    value = ((first & 0x1F) << 6) | (byte(1) & 0x3F);
    at += 2;
  } else if (first < 0xF0) {
    value = ((first & 0x0F) << 12) | ((byte(1) & 0x3F) << 6) | (byte(2) & 0x3F);
    at += 3;
  } else {
    value = ((first & 0x07) << 18) | ((byte(1) & 0x3F) << 12) | ((byte(2) & 0x3F) << 6) | (byte(3) & 0x3F);
    at += 4;
  }
  return value;
}
// The bytes of the character that begins with this one.
inline std::size_t bytes_of_lead(char lead) noexcept {
  const auto c = static_cast<unsigned char>(lead);
  return c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
}
bool is_ascii(std::string_view text) noexcept;

// The category, "Lu"; "Cn" for numbers that are no character.
std::string_view general_category(char32_t c) noexcept;
bool is_white_space(char32_t c) noexcept;  // property White_Space
bool is_number(char32_t c) noexcept;       // category N, as regular expressions have it
bool is_mark_of_regex(char32_t c) noexcept;
bool is_letter(char32_t c) noexcept;                 // category L
bool is_numeric(char32_t c) noexcept;                // category N
bool is_punctuation(char32_t c) noexcept;            // category P, and all of ASCII's !-/ :-@ [-` {-~
bool is_punctuation_or_symbol(char32_t c) noexcept;  // categories P and S
bool is_other(char32_t c) noexcept;                  // categories Cc, Cf, Co
bool is_nonspacing(char32_t c) noexcept;             // category Mn
bool is_mark(char32_t c) noexcept;                   // category M
bool is_word_char(char32_t c) noexcept;              // \w: Alphabetic, M, Nd, Pc, Join_Control
bool is_chinese(char32_t c) noexcept;                // the blocks that BERT separates

// Lower case regardless of the context: one character, but two for U+0130.
struct Lower {
  char32_t first, second;  // second 0: none
};
Lower to_lower(char32_t c) noexcept;

// The script. Common and Inherited count as scripts; `kNoScript` for spaces and characters without one.
inline constexpr std::uint8_t kNoScript = 0;
std::uint8_t script_of(char32_t c) noexcept;

// A character of rewritten text: change 1 is one that was added, 0 one that stands for the next character of the old text, -n one
// that also stands for the n characters behind that.
struct Change {
  char32_t c;
  std::int32_t change;
};
enum class Form { nfd, nfkd, nfc, nfkc };
// False where the form leaves the text as it is; `to` is untouched then.
bool normalize(std::string_view text, Form form, std::vector<Change>& to);

// The end of the grapheme cluster that begins at `at`.
std::size_t grapheme_end(std::string_view text, std::size_t at) noexcept;

}  // namespace sdx::text
