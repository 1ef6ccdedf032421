#pragma once
// A grammar over a model's tokens.

#include <memory>
#include <string_view>
#include <unordered_set>

#include <sdx/text.hpp>

#include "text/grammar/grammar.h"

namespace sdx::text {

// The vocabulary of a tokenizer's tokens and those of `ends`. `vocabulary`: the model's size; numbers beyond are never allowed.
// `marks`: special tokens that stand for their names.
std::shared_ptr<const grammar::Vocabulary> grammar_vocabulary(const Tokenizer& tokenizer, std::span<const TokenId> ends,
                                                              std::int64_t vocabulary,
                                                              const std::unordered_set<TokenId>& marks = {});
TokenMaskMaker mask_maker(grammar::Grammar grammar, std::shared_ptr<const grammar::Vocabulary> vocabulary);
// Throws Error(invalid_argument) that says what is wrong, and where.
grammar::Grammar read_grammar(OutputFormat format, std::string_view text);

}  // namespace sdx::text
