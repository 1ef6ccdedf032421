#pragma once
// Where tensors' memory comes from: 64-byte aligned, counted against the budget of the session that is running.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace sdx {

// Bytes in use by one session, and the most it may use. Thread-safe.
class MemoryBudget {
 public:
  // limit 0: no limit of its own.
  explicit MemoryBudget(std::size_t limit = 0) : limit_(limit) {}
  std::size_t limit() const noexcept { return limit_; }
  std::size_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  std::size_t peak() const noexcept { return peak_.load(std::memory_order_relaxed); }
  // Throws Error(out_of_memory) and takes nothing when the limit would be exceeded.
  void take(std::size_t bytes);
  void give_back(std::size_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  std::size_t limit_;
  std::atomic<std::size_t> used_{0};
  std::atomic<std::size_t> peak_{0};
};

// 64-byte aligned, uninitialised memory, charged to the current budget (if one is set on this thread) until released.
// Never null, also for 0 bytes. Throws Error(out_of_memory); a request beyond the machine's memory is refused at once
// instead of being left to the kernel's out-of-memory killer.
std::shared_ptr<void> allocate(std::size_t bytes);

// Charges allocate() on this thread to `budget` (null: to nobody) for this scope.
class BudgetScope {
 public:
  explicit BudgetScope(std::shared_ptr<MemoryBudget> budget);
  ~BudgetScope();
  BudgetScope(const BudgetScope&) = delete;
  BudgetScope& operator=(const BudgetScope&) = delete;

 private:
  std::shared_ptr<MemoryBudget> previous_;
};

}  // namespace sdx
