#pragma once
// Characters and letter case as Python's str has them. Strings are valid UTF-8; places count characters.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sdx::text::jinja {

std::u32string decode(std::string_view text);
std::string encode(std::u32string_view text);
// The position of character `index` (<= length).
std::size_t byte_offset(std::string_view text, std::size_t index);

bool is_space(char32_t c);
bool is_alpha(char32_t c);
bool is_decimal(char32_t c);
bool is_digit(char32_t c);
bool is_numeric(char32_t c);
bool is_printable(char32_t c);
bool is_upper(char32_t c);
bool is_lower(char32_t c);
bool is_title(char32_t c);
bool is_word(char32_t c);  // \w of Python's re
bool is_identifier_start(char32_t c);
bool is_identifier_part(char32_t c);

void append_upper(std::string& to, char32_t c);
void append_title(std::string& to, char32_t c);
std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string title(std::string_view text);       // str.title
std::string capitalize(std::string_view text);  // str.capitalize
std::string swapcase(std::string_view text);
std::string casefold(std::string_view text);

std::string_view strip_left(std::string_view text);  // of white space
std::string_view strip_right(std::string_view text);
inline std::string_view strip(std::string_view text) { return strip_left(strip_right(text)); }
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends = false);

}  // namespace sdx::text::jinja
