#include "base/block_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

#include "base/memory.h"

namespace sdx {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
// A chunk is as large as all blocks before it, so that small models stay small. What no block takes is never touched, and so
// costs nothing.
constexpr std::size_t kLeast = std::size_t{1} << 18, kMost = 2 * kHugePage;
constexpr std::size_t kLarge = 32 * kHugePage;  // gains nothing by company

std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

// Null: there is none.
std::shared_ptr<void> map_chunk(std::size_t bytes) {
  const std::size_t room = bytes < kHugePage ? bytes : bytes + kHugePage;
  void* mapped = ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
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

}  // namespace

std::shared_ptr<void> BlockPool::allocate(std::size_t bytes) {
  const std::size_t rounded = round_up(std::max<std::size_t>(bytes, 1), 64);
  if (bytes > kLarge) return sdx::allocate(bytes);
  if (rounded > size_ - used_) {
    std::size_t size = std::max(round_up(rounded, kLeast), std::clamp(total_, kLeast, kMost));
    if (size >= kHugePage) size = round_up(size, kHugePage);
    std::shared_ptr<void> made = map_chunk(size);
    if (made == nullptr) return sdx::allocate(bytes);
    if (size - rounded < size_ - used_) {  // what remains of the one before is of more use
      total_ += rounded;
      return charged(std::move(made), rounded);
    }
    chunk_ = std::move(made);
    size_ = size;
    used_ = 0;
  }
  void* data = static_cast<char*>(chunk_.get()) + used_;
  std::shared_ptr<void> block = charged({data, [chunk = chunk_](void*) {}}, rounded);
  used_ += rounded;
  total_ += rounded;
  return block;
}

}  // namespace sdx
