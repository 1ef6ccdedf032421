#pragma once
// Allocation of tensors: 64-byte aligned memory, counted against the budget of the session that is running.

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/tools_api.h"

namespace sdx {

// Bytes in use by one session, and the most it may use. Thread-safe.
class MemoryBudget {
 public:
  // limit 0: no limit of its own.
  explicit MemoryBudget(std::size_t limit = 0) : limit_(limit) {}
  std::size_t limit() const noexcept { return limit_.load(std::memory_order_relaxed); }
  void set_limit(std::size_t bytes) noexcept { limit_.store(bytes, std::memory_order_relaxed); }
  std::size_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  std::size_t peak() const noexcept { return peak_.load(std::memory_order_relaxed); }
  // Throws Error(out_of_memory) and takes nothing when the limit would be exceeded.
  void take(std::size_t bytes);
  void give_back(std::size_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  // Makes peak() start from the present use.
  void reset_peak() noexcept { peak_.store(used(), std::memory_order_relaxed); }

 private:
  std::atomic<std::size_t> limit_;
  std::atomic<std::size_t> used_{0};
  std::atomic<std::size_t> peak_{0};
};

// Freed blocks of one session's runs, kept for its next runs: results of a megabyte and more would otherwise be given back to the
// system after each run and taken from it anew, page by page, which costs several times what writing them does (12 of 33 ms for
// the 19 MB of keys and values that GPT-2 hands out per token). Keeps the 64 blocks freed last, 256 MiB at most. Thread-safe;
// shared by everything that may still free one of its blocks.
class SDX_TOOLS_API BlockKeep {
 public:
  static constexpr std::size_t kLeast = std::size_t{64} << 10;  // below, malloc is as good for a session's runs
  static constexpr std::size_t kMost = std::size_t{256} << 20, kBlocks = 64;

  // `least`: blocks smaller than this are left to malloc.
  explicit BlockKeep(std::size_t most = kMost, std::size_t blocks = kBlocks, std::size_t least = kLeast);
  ~BlockKeep();
  BlockKeep(const BlockKeep&) = delete;
  BlockKeep& operator=(const BlockKeep&) = delete;

  // A kept block of `bytes` to 9/8 of that, and its size; {nullptr, 0} when there is none.
  std::pair<void*, std::size_t> take(std::size_t bytes) noexcept;
  // `block` must come from allocate()'s source; it belongs to the BlockKeep after the call.
  void give(void* block, std::size_t bytes) noexcept;
  std::size_t kept_bytes() const noexcept;
  // The bytes that it may keep, and larger blocks are not taken from it. What is more goes at once.
  std::size_t most() const noexcept { return most_.load(std::memory_order_relaxed); }
  void set_most(std::size_t bytes) noexcept;
  std::size_t least() const noexcept { return least_; }

 private:
  struct Block {
    void* data;
    std::size_t bytes;
  };
  void drop_oldest() noexcept;

  mutable std::mutex mutex_;
  std::vector<Block> blocks_;  // oldest first; never grows beyond what the constructor reserved
  std::size_t bytes_ = 0;
  std::atomic<std::size_t> most_;
  const std::size_t least_;
};

// 64-byte aligned, uninitialised memory, charged to the current budget (if one is set on this thread) until released.
// Never null, also for 0 bytes. Throws Error(out_of_memory); a request beyond the machine's memory is refused at once
// instead of being left to the kernel's out-of-memory killer.
SDX_TOOLS_API std::shared_ptr<void> allocate(std::size_t bytes);

// Memory from elsewhere, charged to the current budget until it is released. Throws Error(out_of_memory).
std::shared_ptr<void> charged(std::shared_ptr<void> memory, std::size_t bytes);

// The budget that allocate() charges on a thread, and the kept blocks that it takes from; null: none. The scopes below set it.
struct AllocationContext {
  const std::shared_ptr<MemoryBudget>* budget = nullptr;
  const std::shared_ptr<BlockKeep>* keep = nullptr;
};
// This thread's, valid until the scope that it is in ends.
SDX_TOOLS_API AllocationContext allocation_context() noexcept;

// allocate() on this thread does as on the thread that `lent` is from, which waits for this scope to end.
class SDX_TOOLS_API LentAllocation {
 public:
  explicit LentAllocation(const AllocationContext& lent) noexcept;
  ~LentAllocation();
  LentAllocation(const LentAllocation&) = delete;
  LentAllocation& operator=(const LentAllocation&) = delete;

 private:
  AllocationContext previous_;
};

// Charges allocate() on this thread to `budget` (null: to nobody) for this scope.
class BudgetScope {
 public:
  explicit BudgetScope(std::shared_ptr<MemoryBudget> budget);
  ~BudgetScope();
  BudgetScope(const BudgetScope&) = delete;
  BudgetScope& operator=(const BudgetScope&) = delete;

 private:
  std::shared_ptr<MemoryBudget> budget_;
  AllocationContext previous_;
};

// Makes allocate() on this thread take blocks from `keep`, and return them there, for this scope (null: not).
class KeepScope {
 public:
  explicit KeepScope(std::shared_ptr<BlockKeep> keep);
  ~KeepScope();
  KeepScope(const KeepScope&) = delete;
  KeepScope& operator=(const KeepScope&) = delete;

 private:
  std::shared_ptr<BlockKeep> keep_;
  AllocationContext previous_;
};

}  // namespace sdx
