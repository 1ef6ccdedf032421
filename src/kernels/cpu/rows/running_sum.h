#pragma once
// Running sums along an axis: CumSum.

#include <cstdint>

namespace sdx::cpu {

struct RunningSum {
  std::int64_t outer, axis, inner;
  bool exclusive = false;  // without the element itself
  bool reverse = false;    // from the last element on
};

// x and y, [outer, axis, inner], dense, aligned to floats; y may be x. Sums run in double, so they are the same for any number of
// threads and lanes. Thread-safe, split over current_pool().
void running_sum_f32(const RunningSum& shape, const float* x, float* y);

}  // namespace sdx::cpu
