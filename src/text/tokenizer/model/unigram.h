#pragma once
// The Unigram model: the most probable way to cut a piece, by Viterbi.

#include <optional>
#include <vector>

#include "text/tokenizer/model/model.h"
#include "text/tokenizer/model/trie.h"

namespace sdx::text {

class Unigram final : public TokenModel {
 public:
  struct Piece {
    std::string_view text;
    double score;
    bool usable = true;  // text is cut into it
  };
  // Ids are places. `single`: sums are rounded to single precision, as SentencePiece's are. Throws Error(invalid_model).
  Unigram(const std::vector<Piece>& pieces, std::optional<std::uint64_t> unk_id, bool byte_fallback, bool single = false);

  void tokenize(std::string_view piece, Workspace& workspace, std::vector<Token>& to) const override;

 private:
  struct Node {
    double score = 0;
    std::uint32_t begin = kNone, id = 0;
    static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  };
  void cut(std::string_view piece, std::vector<Token>& to) const;
  void add(std::string_view piece, std::uint32_t begin, std::uint32_t end, bool unknown, std::vector<Token>& to) const;

  Trie trie_;
  std::vector<double> scores_;
  double unk_score_ = 0;
  bool single_;
  std::optional<std::uint32_t> unk_id_;
  std::vector<std::uint32_t> byte_tokens_;  // empty: no fallback
};

}  // namespace sdx::text
