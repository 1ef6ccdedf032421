#pragma once
// Sums, products, largest and smallest elements of rows, by vectors: integers, float32 and float64.

#include <cstdint>

#include <sdx/dtype.hpp>

namespace sdx::cpu {

struct Fold {
  // *y: all of x[n] combined. NaN if there is one. Extremes: n >= 1.
  void (*row)(const void* x, std::int64_t n, void* y);
  // y[i]: x[i] and y[i] combined.
  void (*merge)(const void* x, std::int64_t n, void* y);
};

// Integers wrap around. Rows of floats are summed in the same order by all instruction sets, so that errors grow with the
// logarithm of n. Null functions for other types.
const Fold& sums(DataType type);
const Fold& products(DataType type);
const Fold& extremes(DataType type, bool largest);

struct Places {
  // The first or last i with x[i] == *value, or with x[i] NaN where *value is.
  std::int64_t (*find)(const void* x, std::int64_t n, const void* value, bool last);
  // Where x[i] displaces best[i], which the first NaN does and with `last` equal elements do: best[i] is x[i], at[i] is `place`.
  void (*merge)(const void* x, std::int64_t n, void* best, std::uint32_t* at, std::uint32_t place, bool last);
};

const Places& places(DataType type, bool largest);

// The first i >= from with x[i] above (below) *bound, or NaN; n: none.
using NextBeyond = std::int64_t (*)(const void* x, std::int64_t from, std::int64_t n, const void* bound, bool above);
NextBeyond next_beyond(DataType type);

}  // namespace sdx::cpu
