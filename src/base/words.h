#pragma once
// Enumerations as words. An enumeration counts from 0, and its words stand in the same order.

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

}  // namespace sdx
