#pragma once
// Byte-pair encoding: a word's characters are joined in the order of learnt merges.

#include <array>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "text/tokenizer/model/model.h"
#include "text/tokenizer/model/pair_table.h"

namespace sdx::text {

struct BpeOptions {
  std::optional<double> dropout;
  std::optional<std::string> unk_token;
  std::string continuing_prefix, end_of_word_suffix;
  bool fuse_unk = false, byte_fallback = false, ignore_merges = false;
};

class Bpe final : public TokenModel {
 public:
  using TextPair = std::pair<std::string_view, std::string_view>;
  // Throws Error(invalid_model) for a merge of, or to, a token that the vocabulary lacks.
  Bpe(Vocabulary vocabulary, const std::vector<TextPair>& merges, BpeOptions options);
  // Merges of one rank are applied from left to right, regardless of the symbols that they join.
  struct RankedMerge {
    std::uint32_t left, right;
    Merge merge;
  };
  Bpe(Vocabulary vocabulary, const std::vector<RankedMerge>& merges, BpeOptions options);

  void tokenize(std::string_view piece, Workspace& workspace, std::vector<Token>& to) const override;
  bool takes_bytes() const noexcept override { return takes_bytes_; }
  void tokenize_bytes(std::string_view piece, Workspace& workspace, std::vector<Token>& to) const override;

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  // Neighbours that stand side by side in some token: a word can be cut between all others, because no merge joins across.
  struct Neighbours {
    std::vector<std::uint64_t> bytes;  // 65536 bits
    std::vector<std::uint64_t> chars;  // sorted pairs
  };

  Bpe(Vocabulary vocabulary, BpeOptions options);
  std::vector<RankedMerge> look_up(const std::vector<TextPair>& merges) const;
  void add_merges(const std::vector<RankedMerge>& merges);
  void set_symbols();
  const std::vector<std::uint64_t>& byte_neighbours() const;
  const std::vector<std::uint64_t>& char_neighbours() const;
  bool joins(std::string_view piece, std::size_t at, bool bytes) const;

  void tokenize_word(std::string_view word, bool bytes, Workspace& workspace, std::vector<Token>& to) const;
  void tokenize_long(std::string_view word, bool bytes, Workspace& workspace, std::vector<Token>& to) const;
  void cut(std::string_view word, bool bytes, Workspace& workspace, std::vector<Token>& to) const;
  void set_symbols_of(std::string_view word, bool bytes, Workspace& workspace) const;
  std::uint32_t symbol(std::string_view c, bool first, bool last) const;
  bool add_bytes(std::string_view c, bool first, bool last, Workspace& workspace) const;
  void merge_short(Workspace& workspace) const;
  void merge_long(Workspace& workspace) const;
  void add_tokens(const Workspace& workspace, std::vector<Token>& to) const;

  BpeOptions options_;
  PairTable merges_;
  bool plain_ = true;  // neither prefix nor suffix: a character's symbol is the same at all places
  bool takes_bytes_ = false, may_cut_ = false;
  std::uint32_t unk_ = kNone;
  std::array<std::uint32_t, 128> ascii_{};
  std::array<std::uint32_t, 256> byte_symbols_{}, last_byte_symbols_{}, byte_tokens_{};
  Vocabulary raw_;  // the vocabulary in bytes, for ignore_merges
  mutable std::once_flag bytes_once_, chars_once_;
  mutable Neighbours neighbours_;
};

}  // namespace sdx::text
