#pragma once
// The end of a text, according to the files of a folder's tokenizer.

#include <filesystem>
#include <optional>
#include <string>

#include <sdx/text.hpp>

namespace sdx::text {

struct TokenizerEnd {
  std::string token;          // "<|im_end|>"
  std::optional<TokenId> id;  // where the small files say it
};

// Reads `eos_token` of tokenizer_config.json, else of special_tokens_map.json. Nothing if neither has it, or cannot be read:
// loading the tokenizer reports the error.
std::optional<TokenizerEnd> read_tokenizer_end(const std::filesystem::path& folder);

}  // namespace sdx::text
