#pragma once
// Answers that are made to be calls.

#include <sdx/text.hpp>
#include <string_view>
#include <unordered_set>

#include "text/grammar/grammar.h"

namespace sdx::text {

// Its unenforced() names tools: "tools[f]#/properties/x/uniqueItems". Throws Error(invalid_argument): no tools, a name that is
// not among them, a schema that cannot be enforced, a format without calls.
grammar::Grammar grammar_of_calls(const AnswerFormat& format, std::string_view tools, const ToolChoice& choice,
                                  std::string_view prompt);

// The grammar of an answer, without its given beginning. unenforced() as above for tools, and "#/properties/x/…" for its text.
// Throws Error(invalid_argument) as above, and for an output that cannot be read.
grammar::Grammar grammar_of_answer(const AnswerConstraint& of);

// The special tokens that the format's marks consist of.
std::unordered_set<std::uint32_t> kept_tokens(const Tokenizer& tokenizer, const AnswerFormat& format);

}  // namespace sdx::text
