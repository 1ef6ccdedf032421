#pragma once
// What this machine can do at most: the measure for a kernel's speed.

#include <sdx/runner.hpp>

namespace sdx::benchmark {

// With `threads` threads at once (0: one per usable core). Takes about 0.2 s. The best figures seen are kept in the cache folder
// (machine.json) for this processor, instruction set and number of threads: other processes can only make a measurement worse.
MachineLimits machine_limits(int threads);

// How much of what the machine can do at most a kernel of ours reached: by operations or by bytes, whichever is more. 0: not
// known, or the kernel is not of our own engine. Above 1 where the data came from a cache.
struct LimitShare {
  double share = 0;
  bool by_memory = false;
};
LimitShare limit_share(const MachineLimits& limits, const std::string& provider, double gflops_per_s, double gbytes_per_s);

}  // namespace sdx::benchmark
