#pragma once
// Callers of one session: one after the other, several at a time, or at a rate.

#include <cstdint>
#include <functional>
#include <vector>

#include <sdx/runner.hpp>

namespace sdx::benchmark {

// Nanoseconds of the monotonic clock, which all processes of a machine share.
std::int64_t now_ns();

struct Sample {
  std::int64_t start_ns = 0;  // with a rate: when the run was to start
  std::int64_t end_ns = 0;
  std::int32_t client = 0;
};

using Arrival = BenchOptions::Arrival;

struct LoadOptions {
  int clients = 1;
  double rate = 0;  // runs a second; 0: closed loop
  Arrival arrival = Arrival::poisson;
};

struct Load {
  std::vector<Sample> samples;  // by start
  std::int64_t wall_ns = 0;     // from the first start to the last end
  std::int64_t cpu_ns = 0;      // processor time of this process meanwhile
  std::int64_t preempted = 0;   // how often a thread of this process lost its core to another one
  std::int64_t compute_ns = 0;  // time of the fixed pieces of work next to the runs (calibrate.h); 0: not measured
  std::int64_t memory_ns = 0;   //
};

// Calls `run` `count` times in all, or, with duration_ns > 0, until that time has passed (at least once). The first exception of
// `run` stops everything and is rethrown. `seed` determines the gaps of Poisson arrivals. `done` receives the number of finished
// runs, on any thread; it may be empty.
Load generate_load(const LoadOptions& options, std::int64_t count, std::int64_t duration_ns, std::uint64_t seed,
                   const std::function<void()>& run, const std::function<void(std::int64_t)>& done = {});

}  // namespace sdx::benchmark
