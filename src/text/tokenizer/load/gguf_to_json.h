#pragma once
// Writes a GGUF file's vocabulary as the files that Hugging Face's tokenizers, and programs based on them, read.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tensor/gguf/gguf.h"

namespace sdx::text {

struct TokenizerFiles {
  std::vector<std::pair<std::string, std::string>> files;  // name and content
  std::string missing;                                     // why there are none
};

// tokenizer.json, tokenizer_config.json (with the chat template) and special_tokens_map.json, if such files can say what the GGUF
// file does. `context`: tokens. Throws Error(invalid_model).
TokenizerFiles tokenizer_files(const GgufFile& file, std::int64_t context);

// The tokenizer files and the chat template of a Hugging Face folder. Throws Error(io).
TokenizerFiles tokenizer_files(const std::filesystem::path& folder);

}  // namespace sdx::text
