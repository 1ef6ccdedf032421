#include "text/tokenizer/model/vocabulary.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace sdx::text {
namespace {

std::uint32_t hash_of(std::string_view text) noexcept {
  return static_cast<std::uint32_t>(XXH3_64bits(text.data(), text.size()));
}

}  // namespace

void Vocabulary::reserve(std::size_t tokens, std::size_t bytes) {
  text_.reserve(bytes);
  entries_.reserve(tokens);
  grow(std::bit_ceil(tokens * 2 + 16));
}

void Vocabulary::grow(std::size_t slots) {
  if (slots <= slots_.size()) return;
  slots_.assign(slots, 0);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    std::size_t slot = entries_[i].hash & (slots - 1);
    while (slots_[slot] != 0) slot = (slot + 1) & (slots - 1);
    slots_[slot] = static_cast<std::uint32_t>(i + 1);
  }
}

std::size_t Vocabulary::slot_of(std::string_view token, std::uint32_t hash) const noexcept {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash & mask;
  while (slots_[slot] != 0) {
    const Entry& e = entries_[slots_[slot] - 1];
    if (e.hash == hash && text(e) == token) break;
    slot = (slot + 1) & mask;
  }
  return slot;
}

void Vocabulary::add(std::string_view token, std::uint32_t id) {
  if (text_.size() + token.size() > 0xFFFFFFFFU) fail(ErrorCode::invalid_model, "the vocabulary is larger than 4 GB");
  if ((entries_.size() + 1) * 2 > slots_.size()) grow(std::max<std::size_t>(16, slots_.size() * 2));
  const std::uint32_t hash = hash_of(token);
  const std::size_t slot = slot_of(token, hash);
  if (slots_[slot] != 0) {
    entries_[slots_[slot] - 1].id = id;
    return;
  }
  entries_.push_back({static_cast<std::uint32_t>(text_.size()), static_cast<std::uint32_t>(token.size()), id, hash});
  text_ += token;
  slots_[slot] = static_cast<std::uint32_t>(entries_.size());
}

void Vocabulary::finish() {
  largest_ = 0;
  for (const Entry& e : entries_) largest_ = std::max(largest_, e.id);
  by_id_.clear();
  sparse_.clear();
  const bool dense = largest_ / 4 <= entries_.size() + 1024;
  if (dense) by_id_.assign(std::size_t{largest_} + 1, Text{});
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& e = entries_[i];
    if (dense) {
      by_id_[e.id] = {e.begin, e.size};
    } else {
      sparse_[e.id] = static_cast<std::uint32_t>(i + 1);
    }
  }
}

std::optional<std::uint32_t> Vocabulary::id(std::string_view token) const noexcept {
  if (slots_.empty()) return std::nullopt;
  const std::size_t slot = slot_of(token, hash_of(token));
  if (slots_[slot] == 0) return std::nullopt;
  return entries_[slots_[slot] - 1].id;
}

std::optional<std::string_view> Vocabulary::token(std::uint32_t id) const noexcept {
  if (id < by_id_.size()) {
    const Text& t = by_id_[id];
    if (t.size == kNoText) return std::nullopt;
    return std::string_view(text_.data() + t.begin, t.size);
  }
  const auto found = sparse_.find(id);
  if (found == sparse_.end()) return std::nullopt;
  return text(entries_[found->second - 1]);
}

}  // namespace sdx::text
