#pragma once
// A grammar over a model's tokens.

#include <memory>
#include <string_view>

#include <sdx/text.hpp>

#include "text/grammar/grammar.h"

namespace sdx::text {

// Of a tokenizer's tokens, with those of `ends` that it has. `vocabulary`: the model's; numbers beyond are never allowed.
std::shared_ptr<const grammar::Vocabulary> grammar_vocabulary(const Tokenizer& tokenizer, std::span<const TokenId> ends,
                                                              std::int64_t vocabulary);
TokenMaskMaker mask_maker(OutputFormat format, std::string_view text, std::shared_ptr<const grammar::Vocabulary> vocabulary);

}  // namespace sdx::text
