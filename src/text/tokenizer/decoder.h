#pragma once
// Tokens to text: steps in order.

#include <string>
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

void decode(const DecoderStep& step, std::vector<std::string>& tokens);

// Every part that is no UTF-8 as U+FFFD, the longest beginning of a character as one.
std::string repair_utf8(std::string_view bytes);

}  // namespace sdx::text
