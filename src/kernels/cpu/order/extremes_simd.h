#pragma once
// The largest and smallest elements of rows, by vectors: integers, float32 and float64.

#include <cstdint>

#include <sdx/dtype.hpp>

namespace sdx::cpu {

struct Extremes {
  // *y: the largest (or smallest) of x[n], n >= 1; NaN if there is one.
  void (*row)(const void* x, std::int64_t n, void* y);
  // y[i]: the larger (or smaller) of x[i] and y[i].
  void (*merge)(const void* x, std::int64_t n, void* y);
  // The first i with x[i] == *value, or with x[i] NaN where *value is.
  std::int64_t (*find)(const void* x, std::int64_t n, const void* value);
};

// Null functions for other types.
const Extremes& extremes(DataType type, bool largest);

}  // namespace sdx::cpu
