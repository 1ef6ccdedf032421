#pragma once
// The per-target functions behind running_sum.h; internal to this folder. No threading.

#include <cstdint>

namespace sdx::cpu {

// One lane: its elements are x[0], x[step], and so on, `count` of them.
struct RunningSumLane {
  const float* x;
  float* y;
  std::int64_t step, count;
  bool exclusive;
};

struct RunningSumKernels {
  // `n` lanes, each `distance` elements from the one before.
  void (*lanes)(const RunningSumLane& first, std::int64_t n, std::int64_t distance);
  // `n` lanes side by side.
  void (*columns)(const RunningSumLane& first, std::int64_t n);
};

const RunningSumKernels& running_sum_kernels();

}  // namespace sdx::cpu
