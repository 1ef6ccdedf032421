#pragma once
// What the files of a folder's tokenizer say about the end of a text.

#include <filesystem>
#include <optional>
#include <string>

#include <sdx/text.hpp>

namespace sdx::text {

struct TokenizerEnd {
  std::string token;          // "<|im_end|>"
  std::optional<TokenId> id;  // where the small files say it
};

// `eos_token` of tokenizer_config.json, else of special_tokens_map.json. Nothing where neither says it, or cannot be read: the
// tokenizer tells what is wrong when it is loaded.
std::optional<TokenizerEnd> read_tokenizer_end(const std::filesystem::path& folder);

}  // namespace sdx::text
