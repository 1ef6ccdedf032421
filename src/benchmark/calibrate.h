#pragma once
// A fixed piece of work: what it takes longer, the machine is slower.

#include <cstdint>

namespace sdx::benchmark {

struct Calibration {
  std::int64_t compute_ns = 0;  // dependent and independent floating-point arithmetic in registers, about 0.3 ms
  std::int64_t memory_ns = 0;   // summing up 4 MiB, about 0.3 ms
};

// The fastest of three each: a run that lost its core says nothing about the core's speed. Single-threaded; about 2 ms.
Calibration calibrate();

}  // namespace sdx::benchmark
