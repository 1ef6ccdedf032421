#pragma once
// Tokens to text: steps in order.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/pattern.h"
#include "text/tokenizer/pre_tokenizer.h"

namespace sdx::text {

struct DecoderStep {
  enum class Kind { bpe, byte_level, wordpiece, metaspace, ctc, replace, fuse, strip, byte_fallback };
  Kind kind = Kind::fuse;
  std::string text;                   // bpe: suffix; wordpiece: prefix; ctc: pad token; replace: content
  std::string delimiter;              // ctc: between words
  bool cleanup = true;                // wordpiece, ctc
  char32_t character = ' ';           // metaspace, strip
  Prepend prepend = Prepend::always;  // metaspace
  Pattern pattern;                    // replace
  std::uint64_t start = 0, stop = 0;  // strip
};

// The byte that a token as "<0x0A>" stands for.
std::optional<char> byte_of_token(std::string_view token);
// Replaces every `what` by `with`; an empty one is between all characters, and at both ends.
std::string replace_all(std::string_view text, std::string_view what, std::string_view with);

void decode(const DecoderStep& step, std::vector<std::string>& tokens);

}  // namespace sdx::text
