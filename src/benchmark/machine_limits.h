#pragma once
// The limits of this machine, as the measure for a kernel's speed.

#include <sdx/runner.hpp>

namespace sdx::benchmark {

// Measures with `threads` threads at once (0: one per usable core), which takes about 0.2 s. The best figures so far are kept in
// the cache folder (machine.json) for this processor, instruction set and number of threads, because other processes can only
// make a measurement worse.
MachineLimits machine_limits(int threads);

// The share of the machine's limits that one of our kernels reached: by operations or by bytes, whichever is more. 0: unknown, or
// the kernel is not ours. Above 1 if the data came from a cache.
struct LimitShare {
  double share = 0;
  bool by_memory = false;
};
LimitShare limit_share(const MachineLimits& limits, const std::string& provider, double gflops_per_s, double gbytes_per_s);

}  // namespace sdx::benchmark
