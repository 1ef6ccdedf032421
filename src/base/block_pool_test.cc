#include "base/block_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include <sdx/error.hpp>

#include "base/memory.h"

namespace sdx {
namespace {

TEST(BlockPool, BlocksAreAlignedAndApart) {
  BlockPool pool;
  std::vector<std::pair<std::shared_ptr<void>, std::size_t>> blocks;
  std::size_t bytes = 1;
  for (int i = 0; i < 60; ++i) {
    blocks.emplace_back(pool.allocate(bytes), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back().first.get()) % 64, 0U);
    std::memset(blocks.back().first.get(), i, bytes);
    bytes = bytes * 7 / 5 + 3;
    if (bytes > (std::size_t{80} << 20)) bytes = 5;  // above and below what has memory of its own
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto* data = static_cast<const unsigned char*>(blocks[i].first.get());
    EXPECT_EQ(data[0], i);
    EXPECT_EQ(data[blocks[i].second - 1], i);
  }
}

TEST(BlockPool, BlocksOutliveIt) {
  std::shared_ptr<void> kept;
  {
    BlockPool pool;
    const auto gone = pool.allocate(1000);
    kept = pool.allocate(0);
    ASSERT_NE(kept, nullptr);
  }
  std::memset(kept.get(), 1, 1);
}

TEST(BlockPool, ChargesWhatIsHeldAndNoMore) {
  const auto budget = std::make_shared<MemoryBudget>(10'000);
  const BudgetScope scope(budget);
  BlockPool pool;
  auto a = pool.allocate(4000);
  EXPECT_EQ(budget->used(), 4032U);
  const auto b = pool.allocate(4000);
  EXPECT_THROW(pool.allocate(4000), Error);
  EXPECT_EQ(budget->used(), 8064U);
  a.reset();
  EXPECT_EQ(budget->used(), 4032U);
  EXPECT_NE(pool.allocate(4000), nullptr);
}

}  // namespace
}  // namespace sdx
