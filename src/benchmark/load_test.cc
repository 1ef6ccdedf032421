#include "benchmark/load.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

namespace sdx::benchmark {
namespace {

TEST(Load, RunsAsOftenAsAsked) {
  std::atomic<int> runs{0};
  EXPECT_EQ(generate_load({}, 7, 0, 0, [&] { ++runs; }).samples.size(), 7U);
  EXPECT_EQ(runs, 7);
  const Load several = generate_load({4, 0, Arrival::poisson}, 50, 0, 0, [&] { ++runs; });
  EXPECT_EQ(several.samples.size(), 50U);
  EXPECT_EQ(runs, 57);
  for (std::size_t i = 1; i < several.samples.size(); ++i)
    EXPECT_LE(several.samples[i - 1].start_ns, several.samples[i].start_ns);
}

TEST(Load, RunsAtLeastOnceInAnyDuration) {
  EXPECT_GE(generate_load({}, 0, 1, 0, [] {}).samples.size(), 1U);
}

TEST(Load, CountsLatencyFromTheIntendedStart) {
  // Runs of 5 ms asked for every millisecond: the last of 10 is to start after 9 ms and ends after 50 ms or later.
  const auto slow = [] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); };
  const Load load = generate_load({1, 1000, Arrival::uniform}, 10, 0, 0, slow);
  ASSERT_EQ(load.samples.size(), 10U);
  EXPECT_EQ(load.samples[9].start_ns - load.samples[0].start_ns, 9'000'000);
  EXPECT_GE(load.samples[9].end_ns - load.samples[9].start_ns, 40'000'000);
}

TEST(Load, PassesErrorsOn) {
  const auto broken = [] { throw std::runtime_error("no"); };
  EXPECT_THROW(generate_load({2, 0, Arrival::poisson}, 10, 0, 0, broken), std::runtime_error);
}

}  // namespace
}  // namespace sdx::benchmark
