#include "text/tokenizer/model/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "base/error.h"
#include "text/tokenizer/byte_level.h"
#include "text/unicode/unicode.h"

namespace sdx::text {
namespace {

// Up to this many symbols the next merge is searched for one by one, which is faster than keeping a queue.
constexpr std::size_t kShort = 40;

}  // namespace

Bpe::Bpe(Vocabulary vocabulary, BpeOptions options) : options_(std::move(options)) {
  vocabulary_ = std::move(vocabulary);
  if (options_.dropout && !(*options_.dropout >= 0 && *options_.dropout <= 1)) {
    fail(ErrorCode::invalid_model, "dropout is {}; expected 0 to 1", *options_.dropout);
  }
  if (options_.dropout == 0.0) options_.dropout.reset();
  plain_ = options_.continuing_prefix.empty() && options_.end_of_word_suffix.empty();
  if (options_.unk_token) unk_ = vocabulary_.id(*options_.unk_token).value_or(kNone);
  for (unsigned b = 0; b < 256; ++b) byte_tokens_[b] = vocabulary_.id(fmt::format("<0x{:02X}>", b)).value_or(kNone);
  set_symbols();
}

Bpe::Bpe(Vocabulary vocabulary, const std::vector<TextPair>& merges, BpeOptions options)
    : Bpe(std::move(vocabulary), std::move(options)) {
  add_merges(look_up(merges));
}

Bpe::Bpe(Vocabulary vocabulary, const std::vector<RankedMerge>& merges, BpeOptions options)
    : Bpe(std::move(vocabulary), std::move(options)) {
  add_merges(merges);
}

std::vector<Bpe::RankedMerge> Bpe::look_up(const std::vector<TextPair>& merges) const {
  const std::size_t prefix = options_.continuing_prefix.size();
  const auto id_of = [&](std::string_view token, std::size_t rank) {
    const auto id = vocabulary_.id(token);
    if (!id) fail(ErrorCode::invalid_model, "merge {} needs the token '{}', which the vocabulary lacks", rank, token);
    return *id;
  };
  std::vector<RankedMerge> found;
  found.reserve(merges.size());
  std::string joined;
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    const std::uint32_t a = id_of(left, rank), b = id_of(right, rank);
    if (right.size() < prefix)
      fail(ErrorCode::invalid_model, "merge {}: '{}' lacks the prefix of continuing tokens", rank, right);
    joined.assign(left);
    joined += right.substr(prefix);
    found.push_back({a, b, {static_cast<std::uint32_t>(rank), id_of(joined, rank)}});
  }
  return found;
}

void Bpe::add_merges(const std::vector<RankedMerge>& merges) {
  merges_.reserve(merges.size());
  may_cut_ = plain_ && !options_.dropout;
  std::unordered_set<std::uint32_t>
      others;  // tokens that stand for other text than their own: they could be joined across any place
  if (unk_ != kNone) others.insert(unk_);
  if (options_.byte_fallback) others.insert(byte_tokens_.begin(), byte_tokens_.end());
  for (const RankedMerge& m : merges) {
    merges_.put(m.left, m.right, m.merge);
    if (!others.empty() && (others.contains(m.left) || others.contains(m.right))) may_cut_ = false;
  }
}

void Bpe::set_symbols() {
  for (unsigned c = 0; c < 128; ++c) {
    const char text = static_cast<char>(c);
    ascii_[c] = vocabulary_.id({&text, 1}).value_or(kNone);
  }
  takes_bytes_ = options_.continuing_prefix.empty();
  for (unsigned b = 0; b < 256 && takes_bytes_; ++b) {
    std::string text;
    append_byte_char(text, static_cast<unsigned char>(b));
    byte_symbols_[b] = vocabulary_.id(text).value_or(kNone);
    last_byte_symbols_[b] = vocabulary_.id(text + options_.end_of_word_suffix).value_or(kNone);
    takes_bytes_ = byte_symbols_[b] != kNone && last_byte_symbols_[b] != kNone;
  }
  if (!takes_bytes_ || !options_.ignore_merges) return;
  raw_.reserve(vocabulary_.size(), vocabulary_.size() * 7);
  vocabulary_.for_each([&](std::string_view token, std::uint32_t id) {
    if (const auto bytes = bytes_of_text(token)) raw_.add(*bytes, id);
  });
}

const std::vector<std::uint64_t>& Bpe::byte_neighbours() const {
  std::call_once(bytes_once_, [this] {
    neighbours_.bytes.assign(65536 / 64, 0);
    vocabulary_.for_each([&](std::string_view token, std::uint32_t) {
      const auto bytes = bytes_of_text(token);
      for (std::size_t i = 1; bytes && i < bytes->size(); ++i) {
        const unsigned pair = static_cast<unsigned char>((*bytes)[i - 1]) * 256U + static_cast<unsigned char>((*bytes)[i]);
        neighbours_.bytes[pair / 64] |= std::uint64_t{1} << (pair % 64);
      }
    });
  });
  return neighbours_.bytes;
}

const std::vector<std::uint64_t>& Bpe::char_neighbours() const {
  std::call_once(chars_once_, [this] {
    auto& chars = neighbours_.chars;
    vocabulary_.for_each([&](std::string_view token, std::uint32_t) {
      if (token.empty()) return;
      std::size_t at = 0;
      char32_t last = next_char(token, at);
      while (at < token.size()) {
        const char32_t next = next_char(token, at);
        chars.push_back((std::uint64_t{last} << 32) | next);
        last = next;
      }
    });
    std::sort(chars.begin(), chars.end());
    chars.erase(std::unique(chars.begin(), chars.end()), chars.end());
    chars.shrink_to_fit();
  });
  return neighbours_.chars;
}

// Whether a merge may join the symbols on both sides of `at`, which is neither end of the piece.
bool Bpe::joins(std::string_view piece, std::size_t at, bool bytes) const {
  if (bytes) {
    const unsigned pair = static_cast<unsigned char>(piece[at - 1]) * 256U + static_cast<unsigned char>(piece[at]);
    return (byte_neighbours()[pair / 64] >> (pair % 64)) & 1;
  }
  std::size_t before = at - 1;
  while (continues_char(piece[before])) --before;
  const std::string_view left = piece.substr(before, at - before), right = piece.substr(at, bytes_of_lead(piece[at]));
  // A character that the vocabulary lacks becomes an unknown token, which may be joined with its neighbour, or bytes.
  if (symbol(left, false, false) == kNone || symbol(right, false, false) == kNone) return true;
  std::size_t l = 0, r = 0;
  const auto& all = char_neighbours();
  return std::binary_search(all.begin(), all.end(), (std::uint64_t{next_char(left, l)} << 32) | next_char(right, r));
}

void Bpe::tokenize(std::string_view piece, Workspace& workspace, std::vector<Token>& to) const {
  if (options_.ignore_merges && !options_.dropout) {
    if (const auto id = vocabulary_.id(piece)) {
      to.push_back({*id, 0, static_cast<std::uint32_t>(piece.size()), false});
      return;
    }
  }
  tokenize_word(piece, false, workspace, to);
}

void Bpe::tokenize_bytes(std::string_view piece, Workspace& workspace, std::vector<Token>& to) const {
  if (options_.ignore_merges && !options_.dropout) {
    if (const auto id = raw_.id(piece)) {
      to.push_back({*id, 0, static_cast<std::uint32_t>(piece.size()), false});
      return;
    }
  }
  tokenize_word(piece, true, workspace, to);
}

void Bpe::tokenize_word(std::string_view word, bool bytes, Workspace& workspace, std::vector<Token>& to) const {
  if (word.size() > kShort && may_cut_) return tokenize_long(word, bytes, workspace, to);
  if (options_.dropout || word.size() > WordCache::kLongest) return cut(word, bytes, workspace, to);
  const std::uint64_t hash = WordCache::hash(word);
  if (const auto* known = workspace.words.find(word, hash)) {
    to.insert(to.end(), known->begin(), known->end());
    return;
  }
  const std::size_t before = to.size();
  cut(word, bytes, workspace, to);
  workspace.words.put(word, hash, std::span(to).subspan(before));
}

// A whole text may be one word. Cut where no merge joins, it is many short ones.
void Bpe::tokenize_long(std::string_view word, bool bytes, Workspace& workspace, std::vector<Token>& to) const {
  std::size_t begin = 0;
  std::uint32_t base = 0;  // characters without any token leave no gap: so does `tokenizers`
  while (begin < word.size()) {
    std::size_t end = begin;
    do {
      end += bytes ? 1 : bytes_of_lead(word[end]);
    } while (end < word.size() && joins(word, end, bytes));
    const std::string_view part = word.substr(begin, end - begin);
    const std::size_t before = to.size();
    const bool cached = part.size() <= WordCache::kLongest;
    const std::uint64_t hash = cached ? WordCache::hash(part) : 0;
    if (const auto* known = cached ? workspace.words.find(part, hash) : nullptr) {
      to.insert(to.end(), known->begin(), known->end());
    } else {
      cut(part, bytes, workspace, to);
      if (cached) workspace.words.put(part, hash, std::span(to).subspan(before));
    }
    for (std::size_t i = before; i < to.size(); ++i) {
      to[i].begin += base;
      to[i].end += base;
    }
    if (to.size() > before) base = to.back().end;
    begin = end;
  }
}

void Bpe::cut(std::string_view word, bool bytes, Workspace& workspace, std::vector<Token>& to) const {
  set_symbols_of(word, bytes, workspace);
  if (workspace.ids.size() <= kShort && !options_.dropout) {
    merge_short(workspace);
  } else {
    merge_long(workspace);
  }
  add_tokens(workspace, to);
}

std::uint32_t Bpe::symbol(std::string_view c, bool first, bool last) const {
  if (plain_ || (first && !last) || (!first && !last && options_.continuing_prefix.empty())) {
    if (c.size() == 1 && static_cast<unsigned char>(c[0]) < 128) return ascii_[static_cast<unsigned char>(c[0])];
    return vocabulary_.id(c).value_or(kNone);
  }
  std::string text = first ? "" : options_.continuing_prefix;
  text += c;
  if (last) text += options_.end_of_word_suffix;
  return vocabulary_.id(text).value_or(kNone);
}

// False where not every byte has a token.
bool Bpe::add_bytes(std::string_view c, bool first, bool last, Workspace& workspace) const {
  std::string text = first ? "" : options_.continuing_prefix;
  text += c;
  if (last) text += options_.end_of_word_suffix;
  const auto token_of = [&](char b) { return byte_tokens_[static_cast<unsigned char>(b)]; };
  if (std::any_of(text.begin(), text.end(), [&](char b) { return token_of(b) == kNone; })) return false;
  for (const char b : text) {
    workspace.ids.push_back(token_of(b));
    workspace.lengths.push_back(1);
  }
  return true;
}

void Bpe::set_symbols_of(std::string_view word, bool bytes, Workspace& workspace) const {
  auto& ids = workspace.ids;
  auto& lengths = workspace.lengths;
  ids.clear();
  lengths.clear();
  if (bytes) {
    for (const char c : word) ids.push_back(byte_symbols_[static_cast<unsigned char>(c)]);
    ids.back() = last_byte_symbols_[static_cast<unsigned char>(word.back())];
    lengths.assign(word.size(), 1);
    return;
  }
  std::uint32_t unknown = 0;  // bytes that wait for one unknown token
  const auto flush = [&] {
    if (unknown == 0) return;
    ids.push_back(unk_);
    lengths.push_back(unknown);
    unknown = 0;
  };
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t size = bytes_of_lead(word[at]);
    const std::string_view c = word.substr(at, size);
    const bool first = at == 0, last = at + size == word.size();
    at += size;
    if (const std::uint32_t id = symbol(c, first, last); id != kNone) {
      flush();
      ids.push_back(id);
      lengths.push_back(static_cast<std::uint32_t>(size));
      continue;
    }
    // An unknown token that waits comes behind these bytes: so does `tokenizers`.
    if (options_.byte_fallback && add_bytes(c, first, last, workspace)) continue;
    if (!options_.unk_token) continue;
    if (unk_ == kNone)
      fail(ErrorCode::runtime_failure, "the vocabulary lacks the unknown token '{}', which '{}' needs", *options_.unk_token, c);
    if (!options_.fuse_unk) flush();
    unknown += static_cast<std::uint32_t>(size);
  }
  flush();
}

void Bpe::merge_short(Workspace& workspace) const {
  auto& ids = workspace.ids;
  auto& lengths = workspace.lengths;
  auto& ranks = workspace.ranks;  // of the pair that begins at each symbol: rank, then the merged token
  constexpr std::uint64_t kNoPair = ~std::uint64_t{0};
  const auto rank_at = [&](std::size_t i) {
    const Merge m = merges_.find(ids[i], ids[i + 1]);
    return (std::uint64_t{m.rank} << 32) | (m.rank == Merge::kNone ? 0xFFFFFFFF : m.id);
  };
  std::size_t count = ids.size();
  ranks.assign(count, kNoPair);
  for (std::size_t i = 0; i + 1 < count; ++i) ranks[i] = rank_at(i);
  while (count > 1) {
    const auto best = std::min_element(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(count) - 1,
                                       [](std::uint64_t a, std::uint64_t b) { return (a >> 32) < (b >> 32); });
    if (*best == kNoPair) break;
    const auto at = static_cast<std::size_t>(best - ranks.begin());
    ids[at] = static_cast<std::uint32_t>(*best);
    lengths[at] += lengths[at + 1];
    const auto erase = [&](auto& v) {
      std::copy(v.begin() + static_cast<std::ptrdiff_t>(at) + 2, v.begin() + static_cast<std::ptrdiff_t>(count),
                v.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    };
    erase(ids);
    erase(lengths);
    erase(ranks);
    --count;
    ranks[at] = at + 1 < count ? rank_at(at) : kNoPair;
    if (at > 0) ranks[at - 1] = rank_at(at - 1);
  }
  ids.resize(count);
  lengths.resize(count);
}

void Bpe::merge_long(Workspace& workspace) const {
  auto& ids = workspace.ids;
  auto& lengths = workspace.lengths;
  const auto count = static_cast<std::uint32_t>(ids.size());
  if (count < 2) return;
  constexpr std::uint32_t kEnd = 0xFFFFFFFF;
  std::vector<std::uint32_t> before(count), after(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    before[i] = i - 1;  // of the first: kEnd
    after[i] = i + 1 < count ? i + 1 : kEnd;
  }
  // Ordered by rank, then from left to right.
  std::vector<std::uint64_t> heap;
  const auto push = [&](std::uint32_t at, bool sift) {
    const Merge m = merges_.find(ids[at], ids[after[at]]);
    if (m.rank == Merge::kNone) return;
    heap.push_back((std::uint64_t{m.rank} << 32) | at);
    if (sift) std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  for (std::uint32_t i = 0; i + 1 < count; ++i) push(i, false);
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  std::vector<std::uint64_t> skipped;
  std::uniform_real_distribution<float> chance(0.0F, 1.0F);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const std::uint64_t top = heap.back();
    heap.pop_back();
    if (options_.dropout && chance(workspace.random) < static_cast<float>(*options_.dropout)) {
      skipped.push_back(top);
      continue;
    }
    for (const std::uint64_t s : skipped) {
      heap.push_back(s);
      std::push_heap(heap.begin(), heap.end(), std::greater<>());
    }
    skipped.clear();
    const auto at = static_cast<std::uint32_t>(top);
    if (lengths[at] == 0 || after[at] == kEnd) continue;
    const std::uint32_t next = after[at];
    const Merge m = merges_.find(ids[at], ids[next]);
    if (m.rank != static_cast<std::uint32_t>(top >> 32)) continue;  // one of them has become another since
    ids[at] = m.id;
    lengths[at] += lengths[next];
    lengths[next] = 0;
    after[at] = after[next];
    if (after[at] != kEnd) before[after[at]] = at;
    if (before[at] != kEnd) push(before[at], true);
    if (after[at] != kEnd) push(at, true);
  }
  std::size_t kept = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (lengths[i] == 0) continue;
    ids[kept] = ids[i];
    lengths[kept++] = lengths[i];
  }
  ids.resize(kept);
  lengths.resize(kept);
}

void Bpe::add_tokens(const Workspace& workspace, std::vector<Token>& to) const {
  std::uint32_t at = 0;
  for (std::size_t i = 0; i < workspace.ids.size(); ++i) {
    const std::uint32_t end = at + workspace.lengths[i];
    to.push_back({workspace.ids[i], at, end, false});
    at = end;
  }
}

}  // namespace sdx::text
