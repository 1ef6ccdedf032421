#pragma once
// A fixed piece of work: if it takes longer, the machine is slower.

#include <cstdint>

namespace sdx::benchmark {

struct Calibration {
  std::int64_t compute_ns = 0;  // dependent and independent floating-point arithmetic in registers, about 0.3 ms
  std::int64_t memory_ns = 0;   // summing up 4 MiB, about 0.3 ms
};

// Times the work on `threads` threads at once, as many as the run beside it has: the run, too, waits for its slowest thread. The
// fastest of three turns counts, because a thread that lost its core says nothing about the core's speed. Takes about 2 ms.
Calibration calibrate(int threads);

}  // namespace sdx::benchmark
