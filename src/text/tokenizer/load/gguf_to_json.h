#pragma once
// A GGUF file's vocabulary as the files that Hugging Face's tokenizers, and what is built upon them, read.

#include <filesystem>
#include <string>
#include <vector>

#include "tensor/gguf/gguf.h"

namespace sdx::text {

// Writes tokenizer.json, tokenizer_config.json (with the chat template) and special_tokens_map.json into the folder. Returns why
// not, where such files cannot say what the GGUF file does; "" where they were written. `context`: tokens. Throws Error(io |
// invalid_model).
std::string write_tokenizer_files(const GgufFile& file, std::int64_t context, const std::filesystem::path& folder);

// Copies what a folder of Hugging Face's has of a tokenizer and its chat template.
void copy_tokenizer_files(const std::filesystem::path& from, const std::filesystem::path& folder);

}  // namespace sdx::text
