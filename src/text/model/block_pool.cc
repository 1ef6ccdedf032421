#include "text/model/block_pool.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/system/pages.h"

namespace sdx::text {
namespace {

// Free blocks that keep their memory in any case, and those that do at most; of states, which are larger, fewer.
constexpr std::int64_t kWarm = 64, kLeastWarm = 8, kLeastWarmStates = 2;
constexpr std::uint64_t kMostWarmBytes = std::uint64_t{128} << 20;

std::size_t rounded_up(std::size_t bytes) { return (bytes + page_bytes() - 1) / page_bytes() * page_bytes(); }

}  // namespace

// One mapping: an array of blocks for keys, one for values, for each layer; the same for scales.
struct BlockPool::Memory {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  struct Array {
    std::size_t at = 0, block_bytes = 0;
  };
  std::vector<Array> arrays;
  ~Memory() {
    if (data != nullptr) give_back_pages(data, bytes);
  }
};

std::vector<CacheLayout::Array> CacheLayout::arrays() const {
  std::vector<Array> all;
  for (std::int64_t i = 0; i < 2 * layers; ++i) {
    all.push_back({type, {kv_heads, kBlockTokens, head_size}, false});
    if (type == DataType::int8) all.push_back({DataType::float32, {kv_heads, kBlockTokens}, true});
  }
  for (const Shape& s : states) all.push_back({DataType::float32, s, false});
  return all;
}

std::uint64_t CacheLayout::block_bytes() const {
  std::uint64_t bytes = 0;
  for (const Array& a : arrays()) bytes += byte_size(a.type, element_count(a.shape));
  return bytes;
}

BlockPool::BlockPool(const CacheLayout& layout, std::int64_t blocks, std::shared_ptr<BlockPool> states)
    : layout_(layout), capacity_(std::clamp<std::int64_t>(blocks, 1, std::int64_t{1} << 30)), states_(std::move(states)) {
  map();
  const std::vector<CacheLayout::Array> arrays = layout_.arrays();
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    Shape shape = arrays[i].shape;
    shape.insert(shape.begin(), capacity_);
    Tensor view = Tensor::view_mutable(memory_->data + memory_->arrays[i].at, arrays[i].type, std::move(shape), memory_);
    (arrays[i].scales ? scales_ : caches_).push_back(std::move(view));
  }
}

BlockPool::~BlockPool() = default;

void BlockPool::map() {
  for (;; capacity_ = (capacity_ + 1) / 2) {
    auto memory = std::make_shared<Memory>();
    for (const CacheLayout::Array& a : layout_.arrays()) {
      const std::size_t size = byte_size(a.type, element_count(a.shape));
      memory->arrays.push_back({memory->bytes, size});
      memory->bytes += rounded_up(size * static_cast<std::size_t>(capacity_));
    }
    memory->bytes = std::max(memory->bytes, page_bytes());  // of networks without attention there are no arrays
    if (void* const data = take_pages(memory->bytes); data != nullptr) {
      memory->data = static_cast<std::byte*>(data);
      memory_ = std::move(memory);
      return;
    }
    if (capacity_ == 1) {
      fail(ErrorCode::out_of_memory, "the system cannot provide {} bytes of address space for keys and values", memory->bytes);
    }
  }
}

std::int32_t BlockPool::take() {
  const std::lock_guard lock(mutex_);
  std::int32_t block = -1;
  if (!warm_.empty()) {
    block = warm_.back();
    warm_.pop_back();
  } else if (!cold_.empty()) {
    block = cold_.back();
    cold_.pop_back();
  } else if (fresh_ < capacity_) {
    references_.resize(static_cast<std::size_t>(fresh_) + 1);
    block = fresh_++;
  } else {
    return -1;
  }
  references_[static_cast<std::size_t>(block)] = 1;
  ++in_use_;
  return block;
}

void BlockPool::share(std::span<const std::int32_t> blocks) {
  const std::lock_guard lock(mutex_);
  for (const std::int32_t b : blocks) ++references_[static_cast<std::size_t>(b)];
}

void BlockPool::drop(std::span<const std::int32_t> blocks) {
  const std::lock_guard lock(mutex_);
  // The first ones are taken again first: a text's blocks stay neighbours.
  for (auto b = blocks.rbegin(); b != blocks.rend(); ++b) {
    if (--references_[static_cast<std::size_t>(*b)] > 0) continue;
    --in_use_;
    warm_.push_back(*b);
  }
  const auto most = static_cast<std::int64_t>(kMostWarmBytes / std::max<std::uint64_t>(1, layout_.block_bytes()));
  const auto keep = static_cast<std::size_t>(
      std::min(std::max(kWarm, in_use_), std::max(layout_.states.empty() ? kLeastWarm : kLeastWarmStates, most)));
  if (warm_.size() <= keep) return;
  const auto end = warm_.begin() + static_cast<std::ptrdiff_t>(warm_.size() - keep);
  give_back(std::vector<std::int32_t>(warm_.begin(), end));
  warm_.erase(warm_.begin(), end);
}

void BlockPool::give_back(std::vector<std::int32_t> blocks) {
  std::sort(blocks.begin(), blocks.end(), std::greater<>());
  for (std::size_t i = 0; i < blocks.size();) {
    std::size_t run = 1;
    while (i + run < blocks.size() && blocks[i + run] == blocks[i] - static_cast<std::int32_t>(run)) ++run;
    const auto first = static_cast<std::size_t>(blocks[i + run - 1]);
    for (const Memory::Array& a : memory_->arrays) {
      const std::size_t begin = rounded_up(a.at + first * a.block_bytes);
      const std::size_t end = (a.at + (first + run) * a.block_bytes) / page_bytes() * page_bytes();
      if (begin < end) forget_pages(memory_->data + begin, end - begin);
    }
    i += run;
  }
  cold_.insert(cold_.end(), blocks.begin(), blocks.end());
}

int BlockPool::references(std::int32_t block) const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(references_[static_cast<std::size_t>(block)]);
}

std::int64_t BlockPool::in_use() const {
  const std::lock_guard lock(mutex_);
  return in_use_;
}

std::uint64_t BlockPool::resident_bytes() const {
  const std::lock_guard lock(mutex_);
  return (static_cast<std::uint64_t>(in_use_) + warm_.size()) * layout_.block_bytes();
}

void BlockPool::copy(std::int32_t from, std::int32_t to) {
  for (const Memory::Array& a : memory_->arrays) {
    std::byte* base = memory_->data + a.at;
    std::memcpy(base + static_cast<std::size_t>(to) * a.block_bytes, base + static_cast<std::size_t>(from) * a.block_bytes,
                a.block_bytes);
  }
}

BlockList::BlockList(const BlockList& other) : pool_(other.pool_), ids_(other.ids_) {
  if (pool_) pool_->share(ids_);
}

BlockList& BlockList::operator=(BlockList other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(ids_, other.ids_);
  return *this;
}

bool BlockList::reserve(std::int64_t kept, std::int64_t tokens) {
  const auto size = CacheLayout::kBlockTokens;
  ids_.reserve(static_cast<std::size_t>((tokens + size - 1) / size));
  for (std::int64_t i = kept / size; i * size < tokens; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (at < ids_.size() && pool_->references(ids_[at]) == 1) continue;
    const std::int32_t block = pool_->take();
    if (block < 0) return false;
    if (at == ids_.size()) {
      ids_.push_back(block);
      continue;
    }
    if (i * size < kept) pool_->copy(ids_[at], block);
    pool_->drop(std::span(&ids_[at], 1));
    ids_[at] = block;
  }
  return true;
}

void BlockList::resize(std::size_t count) {
  if (!pool_ || count >= ids_.size()) return;
  pool_->drop(std::span(ids_).subspan(count));
  ids_.resize(count);
}

void BlockList::add_shared(std::span<const std::int32_t> ids) {
  pool_->share(ids);
  ids_.insert(ids_.end(), ids.begin(), ids.end());
}

}  // namespace sdx::text
