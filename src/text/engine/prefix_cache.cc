#include "text/engine/prefix_cache.h"

#include <algorithm>

namespace sdx::text {

PrefixCache::~PrefixCache() {
  for (const auto& [key, entry] : entries_) pool_->drop(std::span(&entry.block, 1));
}

std::size_t PrefixCache::Hash::operator()(const Key& k) const noexcept {
  std::uint64_t h = k.before * 0x9E3779B97F4A7C15ULL;
  for (const TokenId id : k.tokens) {
    h = (h ^ id) * 0xBF58476D1CE4E5B9ULL;
    h ^= h >> 29;
  }
  return static_cast<std::size_t>(h);
}

PrefixCache::Key PrefixCache::key(Place from, std::span<const TokenId> tokens) {
  Key k{from, {}};
  std::copy_n(tokens.begin(), k.tokens.size(), k.tokens.begin());
  return k;
}

PrefixCache::Found PrefixCache::find(Place from, std::span<const TokenId> tokens, std::size_t most) {
  Found found;
  found.place = from;
  std::vector<Entry*> chain;
  constexpr auto kSize = static_cast<std::size_t>(CacheLayout::kBlockTokens);
  for (std::size_t i = 0; i < most && (i + 1) * kSize <= tokens.size(); ++i) {
    const auto at = entries_.find(key(found.place, tokens.subspan(i * kSize, kSize)));
    if (at == entries_.end()) break;
    chain.push_back(&at->second);
    found.blocks.push_back(at->second.block);
    found.place = at->second.place;
  }
  // The first block was used last: ends are thrown away before what they follow.
  for (auto e = chain.rbegin(); e != chain.rend(); ++e) uses_.splice(uses_.begin(), uses_, (*e)->use);
  return found;
}

PrefixCache::Place PrefixCache::add(Place from, std::span<const TokenId> tokens, std::int32_t block) {
  const auto [at, added] = entries_.try_emplace(key(from, tokens));
  if (added) {
    pool_->share(std::span(&block, 1));
    // Placed just after the block that it follows, so that ends are evicted before their beginnings. A block after an unknown one
    // would never be found.
    const auto before = places_.find(from);
    auto where = from == kStart ? uses_.begin() : uses_.end();
    if (before != places_.end()) where = std::next(before->second);
    at->second = {next_++, block, uses_.insert(where, &at->first)};
    places_.emplace(at->second.place, at->second.use);
  }
  return at->second.place;
}

bool PrefixCache::evict() {
  for (auto use = uses_.end(); use != uses_.begin();) {
    --use;
    const auto at = entries_.find(**use);
    const std::int32_t block = at->second.block;
    if (pool_->references(block) > 1) continue;
    uses_.erase(use);
    places_.erase(at->second.place);
    entries_.erase(at);
    pool_->drop(std::span(&block, 1));
    return true;
  }
  return false;
}

}  // namespace sdx::text
