#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/memory.h"

namespace sdx {
namespace {

TEST(ThreadPool, EveryIndexOnceAndNoShortRanges) {
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const std::int64_t count : {0, 1, 7, 1000}) {
      for (const std::int64_t grain : {0, 1, 3, 4, 5000}) {
        std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
        std::atomic<int> short_ranges{0};
        pool.parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
          if (end - begin < std::min(grain, count) / 2) ++short_ranges;
          for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
        });
        for (const auto& s : seen) ASSERT_EQ(s, 1);
        EXPECT_EQ(short_ranges, 0) << count << " by " << grain;
      }
    }
  }
}

TEST(ThreadPool, ThreadsGetEqualShares) {
  struct Case {
    int threads;
    std::int64_t count, grain;
    std::size_t ranges;
  };
  const Case cases[] = {{2, 10, 1, 8}, {2, 49, 1, 8}, {2, 100, 40, 4}, {2, 5, 2, 4},
                        {2, 3, 1, 3},  {4, 5, 1, 5},  {4, 3, 1, 3},    {4, 1000, 200, 8}};
  for (const Case& c : cases) {
    ThreadPool pool(c.threads);
    std::mutex mutex;
    std::vector<std::int64_t> sizes;
    pool.parallel_for(c.count, c.grain, [&](std::int64_t begin, std::int64_t end) {
      const std::lock_guard lock(mutex);
      sizes.push_back(end - begin);
    });
    EXPECT_EQ(sizes.size(), c.ranges) << c.count << " by " << c.grain;
    const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
    EXPECT_LE(*most - *least, 1) << c.count << " by " << c.grain;
  }
}

TEST(ThreadPool, ExceptionsArriveAndThePoolLivesOn) {
  ThreadPool pool(3);
  for (int round = 0; round < 20; ++round) {
    EXPECT_THROW(pool.parallel_for(100, 1,
                                   [](std::int64_t begin, std::int64_t) {
                                     if (begin >= 50) throw std::runtime_error("half way");
                                   }),
                 std::runtime_error);
    std::atomic<std::int64_t> sum{0};
    pool.parallel_for(100, 1, [&](std::int64_t begin, std::int64_t end) { sum += end - begin; });
    EXPECT_EQ(sum, 100);
  }
}

TEST(ThreadPool, NestedCalls) {
  ThreadPool pool(3);
  std::atomic<std::int64_t> sum{0};
  pool.parallel_for(20, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      pool.parallel_for(50, 1, [&](std::int64_t b, std::int64_t e) { sum += e - b; });
    }
  });
  EXPECT_EQ(sum, 1000);
}

TEST(ThreadPool, ManyCallers) {
  ThreadPool pool(3);
  std::atomic<std::int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 6; ++t) {
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) pool.parallel_for(64, 1, [&](std::int64_t b, std::int64_t e) { sum += e - b; });
    });
  }
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(sum, 6 * 200 * 64);
}

TEST(ThreadPool, ScopesNest) {
  ThreadPool a(1);
  ThreadPool b(1);
  ThreadPool* const before = &current_pool();
  {
    const PoolScope outer(a);
    EXPECT_EQ(&current_pool(), &a);
    {
      const PoolScope inner(b);
      EXPECT_EQ(&current_pool(), &b);
    }
    EXPECT_EQ(&current_pool(), &a);
  }
  EXPECT_EQ(&current_pool(), before);
}

TEST(ThreadPool, WorkersAllocateForTheirCaller) {
  ThreadPool pool(2);
  const auto budget = std::make_shared<MemoryBudget>(std::size_t{64} << 10);
  const BudgetScope charge(budget);
  const std::thread::id caller = std::this_thread::get_id();
  std::mutex mutex;
  std::vector<std::size_t> used;  // as seen on the worker
  bool refused = false;
  for (int round = 0; round < 2000 && used.empty(); ++round) {
    pool.parallel_for(2, 1, [&](std::int64_t, std::int64_t) {
      if (std::this_thread::get_id() == caller) return std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const std::shared_ptr<void> block = allocate(1024);
      const std::lock_guard lock(mutex);
      used.push_back(budget->used());
      try {
        allocate(std::size_t{1} << 20);
      } catch (const Error& e) {
        refused = e.code() == ErrorCode::out_of_memory;
      }
    });
  }
  ASSERT_FALSE(used.empty());
  EXPECT_EQ(used.front(), 1024U);
  EXPECT_TRUE(refused);
  EXPECT_EQ(budget->used(), 0U);
}

TEST(ThreadPool, WorkersStayOnTheirCore) {
  const std::vector<int> usable = parse_cores("auto");
  ASSERT_FALSE(usable.empty());
  const std::vector<int> cores = {usable.front(), usable.back()};
  ThreadPool pool(0, cores);
  ASSERT_EQ(pool.threads(), 2);
  const std::thread::id caller = std::this_thread::get_id();
  std::mutex mutex;
  std::vector<std::vector<int>> seen;
  for (int round = 0; round < 2000 && seen.empty(); ++round) {
    pool.parallel_for(2, 1, [&](std::int64_t, std::int64_t) {
      if (std::this_thread::get_id() == caller) return std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const std::lock_guard lock(mutex);
      seen.push_back(parse_cores("auto"));
    });
  }
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.front(), std::vector<int>{usable.back()});
  EXPECT_EQ(parse_cores("auto"), usable);  // the caller is left alone
}

TEST(ThreadPool, ListsOfCores) {
  const int core = parse_cores("auto").front();
  const std::string one = std::to_string(core);
  EXPECT_EQ(parse_cores(one), std::vector<int>{core});
  EXPECT_EQ(parse_cores(one + "," + one + "-" + one), (std::vector<int>{core, core}));
  for (const char* bad : {"", ",", "x", "1-", "-1", "3-2", "0,,1", "99999999999", "1023", "0 1"})
    EXPECT_THROW(parse_cores(bad), Error) << bad;
}

}  // namespace
}  // namespace sdx
