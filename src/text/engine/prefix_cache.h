#pragma once
// Full blocks of keys and values by the tokens that they stand for and all tokens before them.

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "text/model/block_pool.h"
#include "text/model/decoder.h"

namespace sdx::text {

// Holds a reference to each of its blocks. Not thread-safe.
class PrefixCache {
 public:
  explicit PrefixCache(std::shared_ptr<BlockPool> pool) : pool_(std::move(pool)) {}
  ~PrefixCache();
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  // A place in a text: the tokens up to the end of a block.
  using Place = std::uint64_t;
  static constexpr Place kStart = 0;

  struct Found {
    std::vector<std::int32_t> blocks;
    Place place = kStart;
  };
  // The known blocks after a place, at most `most`. They count as used by this call.
  Found find(Place from, std::span<const TokenId> tokens, std::size_t most);
  // Records that `block` holds the next kBlockTokens tokens. If these are known already, the known block stays. Returns the place
  // after them.
  Place add(Place from, std::span<const TokenId> tokens, std::int32_t block);
  // Releases the least recently used block that has no other owner; false: there is none.
  bool evict();
  std::size_t size() const { return entries_.size(); }

 private:
  // Compared as a whole: two texts with one hash are two texts.
  struct Key {
    Place before;
    std::array<TokenId, CacheLayout::kBlockTokens> tokens;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& k) const noexcept;
  };
  struct Entry {
    Place place = 0;
    std::int32_t block = -1;
    std::list<const Key*>::iterator use;
  };
  static Key key(Place from, std::span<const TokenId> tokens);

  std::shared_ptr<BlockPool> pool_;
  std::unordered_map<Key, Entry, Hash> entries_;
  using Uses = std::list<const Key*>;
  Uses uses_;                                         // the most recent one first
  std::unordered_map<Place, Uses::iterator> places_;  // where an entry is in the order of use
  Place next_ = 1;
};

}  // namespace sdx::text
