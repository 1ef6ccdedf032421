#pragma once
// The bytes that each token stands for in a text, as decoding joins them.

#include <string>
#include <vector>

#include <sdx/export.hpp>
#include <sdx/tokenizer.hpp>

namespace sdx::text {

// [id]: its bytes; empty for special tokens and numbers that no token has. A blank that decoding drops at the beginning of a text
// counts here. Throws Error(not_implemented) for tokenizers whose tokens are not simply joined (WordPiece, CTC).
SDX_API std::vector<std::string> token_bytes(const Tokenizer& tokenizer);

}  // namespace sdx::text
