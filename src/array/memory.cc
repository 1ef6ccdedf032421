#include "array/memory.h"

#include <algorithm>

#include "base/system/pages.h"

namespace sdx::array {
namespace {

constexpr std::size_t kBlocks = 256;

std::size_t default_cache_limit() { return std::max(BlockKeep::kMost, static_cast<std::size_t>(machine_memory() / 8)); }

// Never destroyed: results may outlive everything else.
const std::shared_ptr<MemoryBudget>& budget() {
  static const auto& instance = *new std::shared_ptr<MemoryBudget>(std::make_shared<MemoryBudget>());
  return instance;
}

const std::shared_ptr<BlockKeep>& keep() {
  static const auto& instance =
      *new std::shared_ptr<BlockKeep>(std::make_shared<BlockKeep>(default_cache_limit(), kBlocks, detail::kLeastKept));
  return instance;
}

}  // namespace

std::size_t get_active_memory() { return budget()->used(); }
std::size_t get_peak_memory() { return budget()->peak(); }
void reset_peak_memory() { budget()->reset_peak(); }
std::size_t get_cache_memory() { return keep()->kept_bytes(); }

void clear_cache() { set_cache_limit(set_cache_limit(0)); }

std::size_t set_cache_limit(std::size_t limit) {
  const std::size_t before = keep()->most();
  keep()->set_most(limit);
  return before;
}

std::size_t set_memory_limit(std::size_t limit) {
  const std::size_t before = budget()->limit();
  budget()->set_limit(limit);
  return before;
}

namespace detail {

AllocationContext array_memory() noexcept { return {&budget(), &keep()}; }

Tensor new_tensor(DataType dtype, Shape shape) {
  const LentAllocation memory(array_memory());
  return Tensor(dtype, std::move(shape));
}

}  // namespace detail
}  // namespace sdx::array
