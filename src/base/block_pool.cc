#include "base/block_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "base/memory.h"

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
  void* mapped = ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  void* data = mapped;
  if (room != bytes) {
    const auto at = reinterpret_cast<std::uintptr_t>(mapped);
    data = static_cast<char*>(mapped) + (round_up(at, kHugePage) - at);
#ifdef MADV_HUGEPAGE
    ::madvise(data, bytes, MADV_HUGEPAGE);  // advice: a refusal changes nothing
#endif
  }
  return {data, [mapped, room](void*) { ::munmap(mapped, room); }};
}

// The pages that lie wholly inside.
void give_back(void* data, std::size_t bytes) {
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto at = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t begin = round_up(at, page), end = (at + bytes) / page * page;
  if (end > begin) ::madvise(static_cast<char*>(data) + (begin - at), end - begin, MADV_DONTNEED);
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
  std::shared_ptr<void> block = charged({data, [chunk = chunk_, rounded](void* p) { give_back(p, rounded); }}, rounded);
  used_ += rounded;
  return block;
}

}  // namespace sdx
