#include "base/memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

namespace sdx {
namespace {

constexpr std::size_t kSize = std::size_t{1} << 20;

TEST(BlockKeep, NextRunGetsTheBlockOfTheLast) {
  const auto keep = std::make_shared<BlockKeep>();
  const KeepScope scope(keep);
  std::shared_ptr<void> first = allocate(kSize);
  std::memset(first.get(), 1, kSize);
  const void* place = first.get();
  EXPECT_EQ(keep->kept_bytes(), 0U);
  first.reset();
  EXPECT_GE(keep->kept_bytes(), kSize);
  const std::shared_ptr<void> again = allocate(kSize + 64 * 100 - kSize / 16);
  EXPECT_EQ(again.get(), place);
  EXPECT_EQ(keep->kept_bytes(), 0U);
}

TEST(BlockKeep, GrowingResultsFindLargeEnoughBlocks) {
  const auto keep = std::make_shared<BlockKeep>();
  const KeepScope scope(keep);
  int fresh = 0;
  const void* last = nullptr;
  for (std::size_t i = 0; i < 100; ++i) {
    const std::shared_ptr<void> block = allocate(kSize + 64 * i);
    std::memset(block.get(), 2, kSize + 64 * i);
    if (block.get() != last) ++fresh;
    last = block.get();
  }
  EXPECT_EQ(fresh, 2);  // of exactly kSize, and the next step
}

TEST(BlockKeep, MuchSmallerRequestsDoNotTakeLargeBlocks) {
  const auto keep = std::make_shared<BlockKeep>();
  const KeepScope scope(keep);
  allocate(8 * kSize).reset();
  const std::size_t kept = keep->kept_bytes();
  const std::shared_ptr<void> small = allocate(kSize);
  EXPECT_EQ(keep->kept_bytes(), kept);
}

TEST(BlockKeep, KeepsNoMoreThanItsLimits) {
  const auto keep = std::make_shared<BlockKeep>();
  const KeepScope scope(keep);
  std::vector<std::shared_ptr<void>> blocks;
  for (std::size_t i = 0; i < 2 * BlockKeep::kBlocks; ++i) blocks.push_back(allocate(BlockKeep::kLeast));
  blocks.clear();
  EXPECT_EQ(keep->kept_bytes(), BlockKeep::kBlocks * BlockKeep::kLeast);
  for (int i = 0; i < 5; ++i) blocks.push_back(allocate(BlockKeep::kMost / 4));  // never touched: address space alone
  blocks.clear();
  EXPECT_LE(keep->kept_bytes(), BlockKeep::kMost);
  allocate(2 * BlockKeep::kMost).reset();
  EXPECT_LE(keep->kept_bytes(), BlockKeep::kMost);
}

TEST(BlockKeep, OutlivesItsScopeAndOtherThreadsMayFree) {
  auto keep = std::make_shared<BlockKeep>();
  const std::weak_ptr<BlockKeep> alive = keep;
  std::shared_ptr<void> block;
  {
    const KeepScope scope(std::move(keep));
    block = allocate(kSize);
  }
  EXPECT_FALSE(alive.expired());
  std::thread([b = std::move(block)]() mutable { b.reset(); }).join();
  EXPECT_TRUE(alive.expired());
}

TEST(BlockKeep, BudgetIsChargedForWhatWasAskedFor) {
  const auto keep = std::make_shared<BlockKeep>();
  const auto budget = std::make_shared<MemoryBudget>();
  const KeepScope scope(keep);
  const BudgetScope charge(budget);
  std::shared_ptr<void> block = allocate(kSize + 64);
  EXPECT_EQ(budget->used(), kSize + 64);
  block.reset();
  EXPECT_EQ(budget->used(), 0U);
}

}  // namespace
}  // namespace sdx
