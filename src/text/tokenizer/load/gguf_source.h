#pragma once
// The metadata `tokenizer.ggml.*` of a GGUF file, before they become a tokenizer, or files for other programs.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/gguf/gguf.h"
#include "text/tokenizer/load/pieces.h"
#include "text/tokenizer/load/split_expressions.h"
#include "text/tokenizer/model/bpe.h"

namespace sdx::text {

// Views into the file.
struct GgufSource {
  const GgufFile& file;
  std::vector<std::string_view> tokens;
  std::vector<double> types;

  // A normal piece that reads as a mark between turns is a control token: some converters forget to say so.
  PieceType type(std::size_t i) const;
  std::optional<std::uint32_t> id(const char* key) const;
  std::optional<std::string> token(const char* key) const;
  SpecialTokens special() const;
};
// Throws Error(invalid_model).
GgufSource read_gguf_source(const GgufFile& file);

// Control tokens that by their text end an answer, a turn or a message ("<|eot_id|>"), in the order of their numbers: many files
// list none of them as ids.
std::vector<std::uint32_t> end_tokens_of(const GgufSource& source);

// For the kinds `llama` and `t5` (unigram).
PieceVocabulary pieces_of(const GgufSource& source, bool unigram);

// For the kind `gpt2`.
struct ByteLevelSource {
  std::vector<Bpe::TextPair> merges;
  const SplitExpressions* split = nullptr;
  bool add_prefix_space = false;
  std::optional<std::uint32_t> bos, eos;  // that are added
};
ByteLevelSource byte_level_of(const GgufSource& source);

// Tokens that are looked for in text, by number.
std::vector<std::pair<std::uint32_t, AddedToken>> added_tokens_of(const GgufSource& source);

}  // namespace sdx::text
