#include "text/engine/prefix_cache.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

namespace sdx::text {
namespace {

using Ids = std::vector<TokenId>;
constexpr std::int64_t kBlock = CacheLayout::kBlockTokens;
constexpr auto kTokens = static_cast<std::size_t>(kBlock);

Ids counting(TokenId first, std::size_t blocks) {
  Ids ids(blocks * kTokens);
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

std::shared_ptr<BlockPool> small_pool(std::int64_t blocks, DataType type = DataType::float32) {
  return std::make_shared<BlockPool>(CacheLayout{2, 3, 8, type}, blocks);
}

TEST(BlockPool, BlocksAreSharedUntilSomebodyWrites) {
  const auto pool = small_pool(4, DataType::int8);
  EXPECT_EQ(pool->layout().block_bytes(), 2U * 2 * 3 * kTokens * (8 + 4));
  BlockList a(pool);
  ASSERT_TRUE(a.reserve(0, kBlock + 8));
  EXPECT_EQ(a.ids().size(), 2U);
  Tensor keys = pool->caches()[0];
  auto* rows = static_cast<std::int8_t*>(keys.mutable_data());
  std::memset(rows + static_cast<std::ptrdiff_t>(a.ids()[1]) * 3 * kBlock * 8, 7, 3 * kTokens * 8);
  BlockList b = a;
  EXPECT_EQ(pool->in_use(), 2);
  // The first block stays both's; the second one, which is to be written, becomes two with the same in it.
  ASSERT_TRUE(b.reserve(kBlock + 8, kBlock + 9));
  EXPECT_EQ(b.ids()[0], a.ids()[0]);
  EXPECT_NE(b.ids()[1], a.ids()[1]);
  EXPECT_EQ(rows[static_cast<std::ptrdiff_t>(b.ids()[1]) * 3 * kBlock * 8 + 5], 7);
  ASSERT_TRUE(a.reserve(kBlock + 8, 2 * kBlock));
  EXPECT_EQ(pool->in_use(), 3);
  EXPECT_FALSE(a.reserve(2 * kBlock, 4 * kBlock));
  a.resize(0);
  EXPECT_EQ(pool->in_use(), 2);
  b = BlockList();
  EXPECT_EQ(pool->in_use(), 0);
}

TEST(BlockPool, FreeBlocksBeyondSomeGiveTheirMemoryBack) {
  const auto pool = small_pool(1000);
  BlockList a(pool);
  ASSERT_TRUE(a.reserve(0, 500 * kBlock));
  EXPECT_EQ(pool->resident_bytes(), 500 * pool->layout().block_bytes());
  Tensor keys = pool->caches()[0];
  for (float& x : keys.mutable_values<float>().first(static_cast<std::size_t>(500 * 3 * kBlock * 8))) x = 1;
  a.resize(0);
  EXPECT_EQ(pool->resident_bytes(), 64 * pool->layout().block_bytes());
  ASSERT_TRUE(a.reserve(0, 1000 * kBlock));
  EXPECT_FALSE(a.reserve(0, 1001 * kBlock));
}

TEST(PrefixCache, FindsTheLongestBeginning) {
  const auto pool = small_pool(10);
  PrefixCache cache(pool);
  const Ids text = counting(0, 3);
  BlockList blocks(pool);
  ASSERT_TRUE(blocks.reserve(0, 3 * kBlock));
  PrefixCache::Place place = PrefixCache::kStart;
  for (std::size_t i = 0; i < 3; ++i) place = cache.add(place, std::span(text).subspan(i * kTokens, kTokens), blocks.ids()[i]);
  EXPECT_EQ(cache.find(PrefixCache::kStart, text, 9).blocks, blocks.ids());
  EXPECT_EQ(cache.find(PrefixCache::kStart, text, 2).blocks.size(), 2U);
  EXPECT_EQ(cache.find(PrefixCache::kStart, std::span(text).first(3 * kTokens - 1), 9).blocks.size(), 2U);
  // The same tokens behind others are something else.
  EXPECT_TRUE(cache.find(PrefixCache::kStart, std::span(text).subspan(kTokens), 9).blocks.empty());
  Ids other = text;
  other[kTokens + 8] = 9999;
  EXPECT_EQ(cache.find(PrefixCache::kStart, other, 9).blocks.size(), 1U);
  // Blocks that are known already stay.
  BlockList twin(pool);
  ASSERT_TRUE(twin.reserve(0, kBlock));
  cache.add(PrefixCache::kStart, std::span(text).first(kTokens), twin.ids()[0]);
  EXPECT_EQ(cache.find(PrefixCache::kStart, text, 1).blocks[0], blocks.ids()[0]);
  EXPECT_EQ(cache.size(), 3U);
}

TEST(PrefixCache, LetsGoWhatWasNotUsedForLongest) {
  const auto pool = small_pool(10);
  PrefixCache cache(pool);
  const Ids old = counting(0, 2), fresh = counting(500, 1);
  {
    BlockList blocks(pool);
    ASSERT_TRUE(blocks.reserve(0, 3 * kBlock));
    const auto place = cache.add(PrefixCache::kStart, std::span(old).first(kTokens), blocks.ids()[0]);
    cache.add(place, std::span(old).subspan(kTokens), blocks.ids()[1]);
    cache.add(PrefixCache::kStart, fresh, blocks.ids()[2]);
    EXPECT_FALSE(cache.evict());  // a text has them all
  }
  EXPECT_EQ(pool->in_use(), 3);
  cache.find(PrefixCache::kStart, old, 2);
  ASSERT_TRUE(cache.evict());
  EXPECT_TRUE(cache.find(PrefixCache::kStart, fresh, 1).blocks.empty());
  ASSERT_TRUE(cache.evict());  // the end before what it follows
  EXPECT_EQ(cache.find(PrefixCache::kStart, old, 2).blocks.size(), 1U);
  ASSERT_TRUE(cache.evict());
  EXPECT_FALSE(cache.evict());
  EXPECT_EQ(pool->in_use(), 0);
}

TEST(PrefixCache, EndsGoBeforeBeginningsThatNobodyLookedFor) {
  const auto pool = small_pool(10);
  PrefixCache cache(pool);
  const Ids text = counting(0, 3);
  {
    BlockList blocks(pool);
    ASSERT_TRUE(blocks.reserve(0, 3 * kBlock));
    PrefixCache::Place place = PrefixCache::kStart;
    for (std::size_t i = 0; i < 3; ++i) place = cache.add(place, std::span(text).subspan(i * kTokens, kTokens), blocks.ids()[i]);
  }
  ASSERT_TRUE(cache.evict());
  EXPECT_EQ(cache.size(), 2U);
  EXPECT_EQ(cache.find(PrefixCache::kStart, text, 3).blocks.size(), 2U);
}

}  // namespace
}  // namespace sdx::text
