#include "base/block_pool.h"

#include <algorithm>
#include <cstdint>

#include "base/memory.h"
#include "base/system/pages.h"

namespace sdx {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
// Reserves addresses, not memory: blocks are adjacent, and untouched ones cost nothing. Chunks of a few megabytes each wasted
// part of a huge page at their end, a third of BERT's weights.
constexpr std::size_t kChunk = 128 * kHugePage;
constexpr std::size_t kSmall = std::size_t{1} << 18;  // the first chunk: small models need no huge page
constexpr std::size_t kLarge = 32 * kHugePage;        // gains nothing by company

std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

// Null: there is none.
std::shared_ptr<void> map_chunk(std::size_t bytes) {
  const std::size_t room = bytes < kHugePage ? bytes : bytes + kHugePage;
  void* const taken = take_pages(room);
  if (taken == nullptr) return nullptr;
  void* data = taken;
  if (room != bytes) {
    const auto at = reinterpret_cast<std::uintptr_t>(taken);
    data = static_cast<char*>(taken) + (round_up(at, kHugePage) - at);
    prefer_huge_pages(data, bytes);
  }
  return {data, [taken, room](void*) { give_back_pages(taken, room); }};
}

}  // namespace

std::shared_ptr<void> BlockPool::allocate(std::size_t bytes) {
  const std::size_t rounded = round_up(std::max<std::size_t>(bytes, 1), 64);
  if (bytes > kLarge) return sdx::allocate(bytes);
  if (rounded > size_ - used_) {
    const std::size_t size = chunk_ == nullptr && rounded <= kSmall ? kSmall : kChunk;
    std::shared_ptr<void> made = map_chunk(size);
    if (made == nullptr) return sdx::allocate(bytes);
    chunk_ = std::move(made);
    size_ = size;
    used_ = 0;
  }
  void* data = static_cast<char*>(chunk_.get()) + used_;
  std::shared_ptr<void> block = charged({data, [chunk = chunk_, rounded](void* p) { forget_pages(p, rounded); }}, rounded);
  used_ += rounded;
  return block;
}

}  // namespace sdx
