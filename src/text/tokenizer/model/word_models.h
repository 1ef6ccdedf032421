#pragma once
// Models that look words up: WordPiece, the longest beginning first, and WordLevel, whole words alone.

#include <string>

#include "text/tokenizer/model/model.h"
#include "text/tokenizer/model/trie.h"

namespace sdx::text {

class WordPiece final : public TokenModel {
 public:
  WordPiece(Vocabulary vocabulary, std::string unk_token, std::string_view prefix, std::uint64_t longest_word);
  void tokenize(std::string_view piece, Workspace& workspace, std::vector<Token>& to) const override;

 private:
  bool cut(std::string_view piece, std::vector<Token>& to) const;

  Trie trie_;
  std::uint32_t continuing_ = 0;  // the trie's node behind the prefix
  bool continues_ = true;         // there is such a node
  std::string unk_token_;
  std::optional<std::uint32_t> unk_;
  std::uint64_t longest_word_;  // characters
};

class WordLevel final : public TokenModel {
 public:
  WordLevel(Vocabulary vocabulary, std::string unk_token);
  void tokenize(std::string_view piece, Workspace& workspace, std::vector<Token>& to) const override;

 private:
  std::string unk_token_;
  std::optional<std::uint32_t> unk_;
};

}  // namespace sdx::text
