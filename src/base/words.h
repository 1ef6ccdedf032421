#pragma once
// Words: of enumerations, which count from 0 and whose words stand in the same order, and lists of words to look something up in.

#include <algorithm>
#include <span>
#include <string_view>

#include "base/tools_api.h"

namespace sdx {

// The place of `text` among the words, letters' case ignored. Throws Error(invalid_argument) "expected one of …, found '…'; did
// you mean '…'?".
SDX_TOOLS_API std::size_t find_word(std::span<const std::string_view> words, std::string_view text);

template <class Enum>
Enum parse_word(std::span<const std::string_view> words, std::string_view text) {
  return static_cast<Enum>(find_word(words, text));
}

// Calls use(word) for each word of a list, which have a space between them.
template <class F>
constexpr void for_each_word(std::string_view words, F&& use) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    use(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
}

// Whether `text` is one of the words of such a list.
constexpr bool has_word(std::string_view words, std::string_view text) {
  bool found = false;
  for_each_word(words, [&](std::string_view word) { found = found || word == text; });
  return found;
}

}  // namespace sdx
