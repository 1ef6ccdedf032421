#pragma once
// Spreads the prefetch of the memory needed next evenly over the computation of a panel; internal to this folder.

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/simd/cuts.h"

namespace sdx::cpu {

// Weights come from memory, one panel after the other. Prefetches `bytes` bytes at `next` into the second-level cache, in `parts`
// equal parts: one with each call of part().
struct Fetch {
  const char* at = nullptr;
  std::int64_t left = 0, step = 0;
  Fetch(const char* next, std::int64_t bytes, std::int64_t parts)
      : at(next), left(bytes), step(round_up(bytes / std::max<std::int64_t>(1, parts) + 1, 64)) {}
  void part() {
    for (const std::int64_t stop = std::max<std::int64_t>(0, left - step); left > stop; left -= 64, at += 64) {
      __builtin_prefetch(at, 0, 2);
    }
  }
};

}  // namespace sdx::cpu
