#include "text/tokenizer/model/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "text/unicode/unicode.h"

namespace sdx::text {

Unigram::Unigram(const std::vector<Piece>& pieces, std::optional<std::uint64_t> unk_id, bool byte_fallback, bool single)
    : single_(single) {
  if (unk_id && pieces.empty()) fail(ErrorCode::invalid_model, "the vocabulary is empty; expected the unknown token at least");
  if (unk_id && *unk_id >= pieces.size()) {
    fail(ErrorCode::invalid_model, "unk_id is {}; the vocabulary has {} tokens", *unk_id, pieces.size());
  }
  if (unk_id) unk_id_ = static_cast<std::uint32_t>(*unk_id);
  std::size_t bytes = 0;
  for (const Piece& p : pieces) bytes += p.text.size();
  vocabulary_.reserve(pieces.size(), bytes);
  std::vector<Trie::Key> keys;
  keys.reserve(pieces.size());
  double least = std::numeric_limits<double>::infinity();
  for (const Piece& p : pieces) {
    const auto id = static_cast<std::uint32_t>(scores_.size());
    vocabulary_.add(p.text, id);
    if (!p.text.empty() && p.usable) keys.push_back({p.text, id});
    scores_.push_back(p.score);
    if (p.usable) least = std::min(least, p.score);
  }
  vocabulary_.finish();
  trie_ = Trie(std::move(keys));
  unk_score_ = least - 10.0;
  if (!byte_fallback) return;
  for (unsigned b = 0; b < 256; ++b) byte_tokens_.push_back(vocabulary_.id(fmt::format("<0x{:02X}>", b)).value_or(Node::kNone));
}

void Unigram::tokenize(std::string_view piece, Workspace& workspace, std::vector<Token>& to) const {
  if (piece.size() > WordCache::kLongest) return cut(piece, to);
  const std::uint64_t hash = WordCache::hash(piece);
  if (const auto* known = workspace.words.find(piece, hash)) {
    to.insert(to.end(), known->begin(), known->end());
    return;
  }
  const std::size_t before = to.size();
  cut(piece, to);
  workspace.words.put(piece, hash, std::span(to).subspan(before));
}

void Unigram::cut(std::string_view piece, std::vector<Token>& to) const {
  std::vector<Node> best(piece.size() + 1);  // of all ways that end at this byte
  const auto offer = [&](std::size_t end, double score, std::size_t begin, std::uint32_t id) {
    Node& node = best[end];
    if (single_) score = static_cast<float>(score);
    if (node.begin != Node::kNone && !(score > node.score)) return;
    node = {score, static_cast<std::uint32_t>(begin), id};
  };
  for (std::size_t at = 0; at < piece.size();) {
    const std::size_t size = bytes_of_lead(piece[at]);
    const double here = best[at].score;
    bool single = false;
    trie_.prefixes(piece.substr(at), [&](std::size_t length, std::uint32_t id) {
      offer(at + length, scores_[id] + here, at, id);
      single = single || length == size;
    });
    if (!single) {
      if (!unk_id_)
        fail(ErrorCode::runtime_failure, "'{}' is not in the vocabulary, and the model has no unk_id", piece.substr(at, size));
      offer(at + size, unk_score_ + here, at, *unk_id_);
    }
    at += size;
  }
  struct Cut {
    std::uint32_t begin, end;
    bool unknown;
  };
  std::vector<Cut> spans;  // from the end
  for (std::size_t end = piece.size(); end > 0;) {
    const Node& node = best[end];
    const bool unknown = unk_id_ && node.id == *unk_id_;
    // Unknown neighbours are one.
    if (unknown && !spans.empty() && spans.back().unknown) {
      spans.back().begin = node.begin;
    } else {
      spans.push_back({node.begin, static_cast<std::uint32_t>(end), unknown});
    }
    end = node.begin;
  }
  for (auto i = spans.rbegin(); i != spans.rend(); ++i) add(piece, i->begin, i->end, i->unknown && single_, to);
}

void Unigram::add(std::string_view piece, std::uint32_t begin, std::uint32_t end, bool unknown, std::vector<Token>& to) const {
  const std::string_view text = piece.substr(begin, end - begin);
  // Unknown text may read like a token nevertheless: `tokenizers` accepts that, SentencePiece does not.
  if (const auto id = unknown ? std::nullopt : vocabulary_.id(text)) {
    to.push_back({*id, begin, end, false});
    return;
  }
  const auto token_of = [&](char b) { return byte_tokens_[static_cast<unsigned char>(b)]; };
  if (!byte_tokens_.empty() && std::none_of(text.begin(), text.end(), [&](char b) { return token_of(b) == Node::kNone; })) {
    for (const char b : text) to.push_back({token_of(b), begin, end, false});
    return;
  }
  to.push_back({unk_id_.value_or(0), begin, end, true});
}

}  // namespace sdx::text
