#pragma once
// The merges by their two neighbours: rank and result.

#include <bit>
#include <cstdint>
#include <vector>

namespace sdx::text {

struct Merge {
  std::uint32_t rank = kNone, id = 0;
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
};

class PairTable {
 public:
  void reserve(std::size_t pairs) {
    slots_.assign(std::bit_ceil(pairs * 2 + 16), Slot{});
    shift_ = 64 - std::bit_width(slots_.size() - 1);
  }
  // If a pair comes twice, the last one counts. At most as many pairs as were reserved.
  void put(std::uint32_t left, std::uint32_t right, Merge merge) {
    Slot& slot = slots_[slot_of(left, right)];
    slot = {left, right, merge};
  }
  // Rank kNone: no merge.
  Merge find(std::uint32_t left, std::uint32_t right) const noexcept {
    return slots_.empty() ? Merge{} : slots_[slot_of(left, right)].merge;
  }

 private:
  struct Slot {
    std::uint32_t left = 0, right = 0;
    Merge merge;
  };
  std::size_t slot_of(std::uint32_t left, std::uint32_t right) const noexcept {
    const std::uint64_t key = (std::uint64_t{left} << 32) | right;
    std::size_t slot = (key * 0x9E3779B97F4A7C15U) >> shift_;
    while (slots_[slot].merge.rank != Merge::kNone && (slots_[slot].left != left || slots_[slot].right != right)) {
      slot = (slot + 1) & (slots_.size() - 1);
    }
    return slot;
  }
  std::vector<Slot> slots_;  // a power of two, at most half full
  int shift_ = 63;
};

}  // namespace sdx::text
