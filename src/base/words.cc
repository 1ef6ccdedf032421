#include "base/words.h"

#include <string>
#include <vector>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text/ascii.h"

namespace sdx {

std::size_t find_word(std::span<const std::string_view> words, std::string_view text) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (same_word(words[i], text)) return i;
  }
  const std::vector<std::string> known(words.begin(), words.end());
  const std::string near = closest(text, known);
  fail(ErrorCode::invalid_argument, "expected one of {}, found '{}'{}", join(known), text,
       near.empty() ? "" : "; did you mean '" + near + "'?");
}

}  // namespace sdx
