#include "base/memory.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <tuple>

#include "base/error.h"
#include "base/poison.h"
#include "base/system/pages.h"
#include "base/system/processors.h"

namespace sdx {
namespace {

// A variable of the thread rather than a parameter: every operator, kernel and container allocates tensors, and none of them
// knows to whose run it belongs.
thread_local constinit AllocationContext t_context;

std::shared_ptr<MemoryBudget> current_budget() { return t_context.budget != nullptr ? *t_context.budget : nullptr; }
std::shared_ptr<BlockKeep> current_keep() { return t_context.keep != nullptr ? *t_context.keep : nullptr; }

std::size_t physical_memory() {
  const std::uint64_t bytes = machine_memory();
  return bytes > 0 ? static_cast<std::size_t>(bytes) : SIZE_MAX / 2;
}

// Weights that stream by in 4 KB pages spend a quarter of the read bandwidth on page tables (21 instead of 30 GB/s for a vector
// times 154 MB of packed weights on a Zen 4 core). Most distributions give huge pages on request. Blocks begin with a huge page.
// If the end of a block fills a small part of a huge page, it stays in small pages, so little memory is lost; a large part gets a
// whole one, which costs less than its small pages would (0.4 against 2 to 3 us for 4 KB when they are touched first).
constexpr std::size_t kHugePage = std::size_t{2} << 20;

void* allocate_block(std::size_t bytes) {
  if (bytes > kHugePage && bytes % kHugePage > kHugePage / 2) bytes = (bytes / kHugePage + 1) * kHugePage;
  void* const data = allocate_aligned(bytes, bytes < kHugePage ? 64 : kHugePage);
  if (data != nullptr && bytes >= kHugePage) prefer_huge_pages(data, bytes);
  return data;
}

// Up to the next eighth of a power of two: caches that grow by one position a run find the block of the run before large enough.
std::size_t with_slack(std::size_t bytes) {
  const std::size_t step = std::max<std::size_t>(1, std::bit_floor(bytes) / 8);
  return (bytes + step - 1) / step * step;
}

}  // namespace

namespace {

struct Keeps {
  std::mutex mutex;
  std::vector<BlockKeep*> all;
};

// Never destroyed: results may outlive everything else.
Keeps& keeps() {
  static Keeps& instance = *new Keeps;
  return instance;
}

}  // namespace

// A thread that is in a keep while another one forks would never leave it in the child: all are locked meanwhile.
BlockKeep::BlockKeep(std::size_t most, std::size_t blocks, std::size_t least) : most_(most), least_(least) {
  static const int registered = [] {
    const auto unlock_all = [] {
      for (BlockKeep* keep : keeps().all) keep->mutex_.unlock();
      keeps().mutex.unlock();
    };
    const auto lock_all = [] {
      keeps().mutex.lock();
      for (BlockKeep* keep : keeps().all) keep->mutex_.lock();
    };
    at_fork(lock_all, unlock_all, unlock_all);
    return 0;
  }();
  (void)registered;
  blocks_.reserve(blocks);
  const std::lock_guard lock(keeps().mutex);
  keeps().all.push_back(this);
}
BlockKeep::~BlockKeep() {
  {
    const std::lock_guard lock(keeps().mutex);
    std::erase(keeps().all, this);
  }
  for (const Block& b : blocks_) free_aligned(b.data);
}

std::pair<void*, std::size_t> BlockKeep::take(std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  auto best = blocks_.end();
  for (auto it = blocks_.end(); it != blocks_.begin();) {  // of equals the one used last: it may be in the cache
    --it;
    if (it->bytes < bytes || it->bytes > bytes + bytes / 8) continue;
    if (best == blocks_.end() || it->bytes < best->bytes) best = it;
    if (best->bytes == bytes) break;
  }
  if (best == blocks_.end()) return {nullptr, 0};
  const Block found = *best;
  blocks_.erase(best);
  bytes_ -= found.bytes;
  return {found.data, found.bytes};
}

void BlockKeep::give(void* block, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  const std::size_t most = this->most();
  if (bytes > most) return free_aligned(block);
  while (!blocks_.empty() && (blocks_.size() == blocks_.capacity() || bytes_ + bytes > most)) drop_oldest();
  blocks_.push_back({block, bytes});
  bytes_ += bytes;
}

void BlockKeep::drop_oldest() noexcept {
  bytes_ -= blocks_.front().bytes;
  free_aligned(blocks_.front().data);
  blocks_.erase(blocks_.begin());
}

void BlockKeep::set_most(std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  most_.store(bytes, std::memory_order_relaxed);
  while (!blocks_.empty() && bytes_ > bytes) drop_oldest();
}

std::size_t BlockKeep::kept_bytes() const noexcept {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void MemoryBudget::take(std::size_t bytes) {
  const std::size_t now = used_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  const std::size_t limit = this->limit();
  if (limit != 0 && now > limit) {
    give_back(bytes);
    fail(ErrorCode::out_of_memory,
         "the memory limit of this session is {} bytes; {} are in use and {} more were asked for. Raise the limit, or use "
         "smaller inputs",
         limit, now - bytes, bytes);
  }
  std::size_t peak = peak_.load(std::memory_order_relaxed);
  while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

std::shared_ptr<void> allocate(std::size_t bytes) {
  if (bytes > physical_memory()) {
    fail(ErrorCode::out_of_memory, "a single tensor of {} bytes does not fit this machine's memory ({} bytes)", bytes,
         physical_memory());
  }
  const std::size_t rounded = (bytes == 0 ? 64 : (bytes + 63) / 64 * 64);
  std::shared_ptr<MemoryBudget> budget = current_budget();
  if (budget) budget->take(rounded);
  std::shared_ptr<BlockKeep> keep = current_keep();
  if (keep && (rounded < keep->least() || rounded > keep->most())) keep = nullptr;
  void* data = nullptr;
  std::size_t size = rounded;
  if (keep) std::tie(data, size) = keep->take(rounded);
  if (data == nullptr) {
    size = keep ? with_slack(rounded) : rounded;
    data = allocate_block(size);
  }
  if (data == nullptr) {
    if (budget) budget->give_back(rounded);
    fail(ErrorCode::out_of_memory, "allocating {} bytes failed", bytes);
  }
  if (poisoning()) poison(data, rounded);
  return {data, [keep = std::move(keep), budget = std::move(budget), size, rounded](void* p) {
            if (keep) {
              keep->give(p, size);
            } else {
              free_aligned(p);
            }
            if (budget) budget->give_back(rounded);
          }};
}

std::shared_ptr<void> charged(std::shared_ptr<void> memory, std::size_t bytes) {
  std::shared_ptr<MemoryBudget> budget = current_budget();
  if (budget == nullptr) return memory;
  budget->take(bytes);
  void* data = memory.get();
  return {data, [memory = std::move(memory), budget = std::move(budget), bytes](void*) { budget->give_back(bytes); }};
}

AllocationContext allocation_context() noexcept { return t_context; }

LentAllocation::LentAllocation(const AllocationContext& lent) noexcept : previous_(std::exchange(t_context, lent)) {}
LentAllocation::~LentAllocation() { t_context = previous_; }

BudgetScope::BudgetScope(std::shared_ptr<MemoryBudget> budget) : budget_(std::move(budget)), previous_(t_context) {
  t_context.budget = &budget_;
}
BudgetScope::~BudgetScope() { t_context = previous_; }

KeepScope::KeepScope(std::shared_ptr<BlockKeep> keep) : keep_(std::move(keep)), previous_(t_context) { t_context.keep = &keep_; }
KeepScope::~KeepScope() { t_context = previous_; }

}  // namespace sdx
