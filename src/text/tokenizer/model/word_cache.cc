#include "text/tokenizer/model/word_cache.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace sdx::text {

std::uint64_t WordCache::hash(std::string_view word) noexcept { return XXH3_64bits(word.data(), word.size()); }

const std::span<const Token>* WordCache::find(std::string_view word, std::uint64_t hash) noexcept {
  if (slots_.empty()) return nullptr;
  for (std::size_t slot = hash & (kSlots - 1); slots_[slot] != 0; slot = (slot + 1) & (kSlots - 1)) {
    const Entry& e = entries_[slots_[slot] - 1U];
    if (e.hash != hash || std::string_view(words_).substr(e.word, e.word_size) != word) continue;
    found_ = std::span(tokens_).subspan(e.tokens, e.token_count);
    return &found_;
  }
  return nullptr;
}

void WordCache::put(std::string_view word, std::uint64_t hash, std::span<const Token> tokens) {
  if (word.size() > kLongest || tokens.size() > kLongest) return;
  if (slots_.empty() || entries_.size() == kEntries || tokens_.size() + tokens.size() > kTokens) {
    slots_.assign(kSlots, 0);
    entries_.clear();
    words_.clear();
    tokens_.clear();
  }
  std::size_t slot = hash & (kSlots - 1);
  while (slots_[slot] != 0) slot = (slot + 1) & (kSlots - 1);
  entries_.push_back({hash, static_cast<std::uint32_t>(words_.size()), static_cast<std::uint32_t>(tokens_.size()),
                      static_cast<std::uint16_t>(word.size()), static_cast<std::uint16_t>(tokens.size())});
  words_ += word;
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  slots_[slot] = static_cast<std::uint16_t>(entries_.size());
}

}  // namespace sdx::text
