#pragma once
// Case of ASCII letters; other bytes stay as they are, whatever the locale.

#include <algorithm>
#include <string>
#include <string_view>

namespace sdx {

constexpr char ascii_lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

inline std::string ascii_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = ascii_lower(c);
  return out;
}

// Equal but for the case of letters.
inline bool same_word(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return ascii_lower(x) == ascii_lower(y); });
}

// Removes white space, and other blank characters, at both ends.
constexpr std::string_view trimmed_text(std::string_view text, std::string_view blanks = " \t\n\v\f\r") noexcept {
  const std::size_t begin = std::min(text.find_first_not_of(blanks), text.size());
  return text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

}  // namespace sdx
