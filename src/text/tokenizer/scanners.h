#pragma once
// The expressions by which well-known models split text into words, as code: five to ten times as fast as Oniguruma, and linear
// in the length of any text. tests/text and pattern_test.cc compare them with the expressions.

#include <string_view>
#include <vector>

#include "text/tokenizer/pattern.h"

namespace sdx::text {

struct KnownPattern {
  std::string_view expression;
  Scanner scan;
};
const std::vector<KnownPattern>& known_patterns();
// Null: none is written exactly so.
Scanner find_scanner(std::string_view expression);

// GPT-2's expression.
std::size_t scan_gpt2(std::string_view text, std::size_t at);
// \w+|[^\w\s]+
std::size_t scan_words(std::string_view text, std::size_t at);

}  // namespace sdx::text
