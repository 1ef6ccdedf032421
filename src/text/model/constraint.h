#pragma once
// A grammar over a model's tokens.

#include <memory>
#include <string>
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
// `begun`: the beginning of each answer, which the prompt has. Throws Error(invalid_argument) where it does not fit.
TokenMaskMaker mask_maker(grammar::Grammar grammar, std::shared_ptr<const grammar::Vocabulary> vocabulary,
                          std::string begun = {});

}  // namespace sdx::text
