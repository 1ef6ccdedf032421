#include "base/arena/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace sdx {
namespace {

bool live_together(const BufferRequest& a, const BufferRequest& b) { return a.first <= b.last && b.first <= a.last; }

// Every rule that a placement must keep; `total` is what assign_offsets() returned.
void check(const std::vector<BufferRequest>& buffers, std::size_t total) {
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const BufferRequest& a = buffers[i];
    ASSERT_EQ(a.offset % 64, 0U);
    ASSERT_LE(a.offset + a.bytes, total);
    for (std::size_t j = 0; j < i; ++j) {
      const BufferRequest& b = buffers[j];
      if (!live_together(a, b)) continue;
      ASSERT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset) << i << " and " << j;
    }
  }
}

TEST(Arena, RandomLifetimesNeverOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const int count = 1 + static_cast<int>(random() % 60);
    const std::uint32_t steps = 1 + static_cast<std::uint32_t>(random() % 40);
    std::vector<BufferRequest> buffers(static_cast<std::size_t>(count));
    std::vector<std::size_t> live(steps, 0);
    std::size_t sum = 0;
    for (BufferRequest& b : buffers) {
      b.bytes = random() % 8 == 0 ? 0 : random() % 5000;
      b.first = static_cast<std::uint32_t>(random()) % steps;
      b.last = b.first + static_cast<std::uint32_t>(random()) % (steps - b.first);
      sum += (b.bytes + 63) / 64 * 64;
      for (std::uint32_t s = b.first; s <= b.last; ++s) live[s] += b.bytes;
    }
    const std::size_t total = assign_offsets(buffers);
    check(buffers, total);
    EXPECT_GE(total, *std::max_element(live.begin(), live.end()));
    EXPECT_LE(total, sum);
  }
}

TEST(Arena, ChainsNeedTwoBuffers) {
  std::vector<BufferRequest> buffers;
  for (std::uint32_t i = 0; i < 100; ++i) buffers.push_back({1000, i, i + 1, 0});
  EXPECT_EQ(assign_offsets(buffers), 2048U);
  check(buffers, 2048);
}

TEST(Arena, NothingTakesNothing) {
  std::vector<BufferRequest> none;
  EXPECT_EQ(assign_offsets(none), 0U);
}

}  // namespace
}  // namespace sdx
