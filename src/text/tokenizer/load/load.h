#pragma once
// Files and folders to tokenizers.

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "tensor/gguf/gguf.h"
#include "text/tokenizer/pipeline.h"

namespace sdx::text {

// Loads a file or a folder, by its content. Throws Error(io), Error(invalid_model).
std::shared_ptr<const TokenizerPipeline> load_pipeline(const std::filesystem::path& path);

std::shared_ptr<TokenizerPipeline> pipeline_of_json(std::string json);

// SentencePiece itself adds nothing to a text, and finds no control symbols in it.
struct SentencePieceSettings {
  bool add_bos = false, add_eos = false, finds_control = false;
};
std::shared_ptr<TokenizerPipeline> pipeline_of_sentencepiece(std::string_view bytes, const SentencePieceSettings& settings);

struct WordPieceSettings {
  bool lowercase = true, chinese_chars = true;
  std::optional<bool> accents;  // strip them; nothing: where text is made lower case
  std::string unk = "[UNK]", cls = "[CLS]", sep = "[SEP]";
};
// Reads `vocab.txt`: a token a line.
std::shared_ptr<TokenizerPipeline> pipeline_of_vocab_txt(std::string_view text, const WordPieceSettings& settings);
// Uses a vocabulary of the tokens in order.
std::shared_ptr<TokenizerPipeline> pipeline_of_wordpiece(Vocabulary vocabulary, const WordPieceSettings& settings);

// Settings of `vocab.json` with `merges.txt`: GPT-2's byte-level BPE.
struct ByteLevelSettings {
  bool add_prefix_space = false;
  std::optional<std::string> unk;
};
std::shared_ptr<TokenizerPipeline> pipeline_of_vocab_and_merges(std::string vocab_json, std::string_view merges_txt,
                                                                const ByteLevelSettings& settings);

std::shared_ptr<TokenizerPipeline> pipeline_of_gguf(const GgufFile& file);

Tokenizer::Impl make_impl(std::shared_ptr<const TokenizerPipeline> pipeline);

}  // namespace sdx::text
