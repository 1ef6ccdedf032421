#pragma once
// The bytes that each token stands for in a text, as decoding joins them.

#include <cstdint>
#include <string>
#include <vector>

#include <sdx/export.hpp>
#include <sdx/tokenizer.hpp>

namespace sdx::text {

// [id]: its bytes; empty for special tokens and numbers that no token has. A blank that decoding drops at the beginning of a text
// counts here. Throws Error(not_implemented) for tokenizers whose tokens are not simply joined (WordPiece, CTC),
// and Error(invalid_model) for more than kMostTokens. `vocabulary`: numbers from here on are left out; 0: none are.
SDX_API std::vector<std::string> token_bytes(const Tokenizer& tokenizer, std::int64_t vocabulary = 0);

// Files may give a token any number up to 4,294,967,295; the largest vocabularies have 300,000 tokens.
inline constexpr std::int64_t kMostTokens = std::int64_t{1} << 24;
// All token numbers that matter are below this. Throws Error(invalid_model) for more than kMostTokens.
std::uint32_t token_count(const Tokenizer& tokenizer, std::int64_t vocabulary);

}  // namespace sdx::text
