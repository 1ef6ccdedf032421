#include "text/tokenizer/model/word_models.h"

#include "base/error.h"
#include "text/unicode/unicode.h"

namespace sdx::text {

WordPiece::WordPiece(Vocabulary vocabulary, std::string unk_token, std::string_view prefix, std::uint64_t longest_word)
    : unk_token_(std::move(unk_token)), longest_word_(longest_word) {
  vocabulary_ = std::move(vocabulary);
  unk_ = vocabulary_.id(unk_token_);
  std::vector<Trie::Key> keys;
  keys.reserve(vocabulary_.size());
  vocabulary_.for_each([&](std::string_view token, std::uint32_t id) {
    if (!token.empty()) keys.push_back({token, id});
  });
  trie_ = Trie(std::move(keys));
  for (const char c : prefix) continues_ = continues_ && trie_.step(continuing_, c);
}

void WordPiece::tokenize(std::string_view piece, Workspace&, std::vector<Token>& to) const {
  const std::size_t before = to.size();
  if (count_chars(piece) <= longest_word_ && cut(piece, to)) return;
  to.resize(before);
  if (!unk_) fail(ErrorCode::runtime_failure, "the vocabulary lacks the unknown token '{}'", unk_token_);
  to.push_back({*unk_, 0, static_cast<std::uint32_t>(piece.size()), false});
}

bool WordPiece::cut(std::string_view piece, std::vector<Token>& to) const {
  std::size_t at = 0;
  while (at < piece.size()) {
    if (at > 0 && !continues_) return false;
    std::uint32_t node = at == 0 ? 0 : continuing_;
    std::size_t length = 0;
    std::uint32_t id = 0;
    for (std::size_t i = at; i < piece.size() && trie_.step(node, piece[i]); ++i) {
      if (trie_.value(node) == Trie::kNone) continue;
      length = i + 1 - at;
      id = trie_.value(node);
    }
    if (length == 0) return false;
    to.push_back({id, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at + length), false});
    at += length;
  }
  return true;
}

WordLevel::WordLevel(Vocabulary vocabulary, std::string unk_token) : unk_token_(std::move(unk_token)) {
  vocabulary_ = std::move(vocabulary);
  unk_ = vocabulary_.id(unk_token_);
}

void WordLevel::tokenize(std::string_view piece, Workspace&, std::vector<Token>& to) const {
  std::optional<std::uint32_t> id = vocabulary_.id(piece);
  if (!id) id = unk_;
  if (!id)
    fail(ErrorCode::runtime_failure, "'{}' is not in the vocabulary, which also lacks the unknown token '{}'", piece, unk_token_);
  to.push_back({*id, 0, static_cast<std::uint32_t>(piece.size()), false});
}

}  // namespace sdx::text
