#include "base/words.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/suggest.h"

namespace sdx {

std::size_t find_word(std::span<const std::string_view> words, std::string_view text) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (std::equal(words[i].begin(), words[i].end(), text.begin(), text.end(), same)) return i;
  }
  const std::vector<std::string> known(words.begin(), words.end());
  const std::string near = closest(text, known);
  fail(ErrorCode::invalid_argument, "expected one of {}, found '{}'{}", join(known), text,
       near.empty() ? "" : "; did you mean '" + near + "'?");
}

}  // namespace sdx
