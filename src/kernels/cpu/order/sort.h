#pragma once
// Sorting the middle extent of [outer, count, inner]; all types that arrays have. NaN comes last, complex numbers are in
// lexicographic order. Split over current_pool(); scratch of up to 32 bytes for each element of the lanes under way.

#include <cstdint>

#include <sdx/dtype.hpp>

#include "kernels/cpu/order/reduce.h"

namespace sdx::cpu {

// y: x sorted. Equal elements keep their order where that can be seen.
void sort_lanes(DataType type, const void* x, void* y, const Lanes& extents);
// y: the places of x's elements in sorted order; equal ones keep their order.
void argsort_lanes(DataType type, const void* x, std::uint32_t* y, const Lanes& extents);
// Like these, but only the element at `kth` is where sorting would put it, with none larger before and none smaller after it.
// [first, last) of the result are written: y[outer, last - first, inner].
void partition_lanes(DataType type, const void* x, void* y, const Lanes& extents, std::int64_t kth, std::int64_t first,
                     std::int64_t last);
void argpartition_lanes(DataType type, const void* x, std::uint32_t* y, const Lanes& extents, std::int64_t kth);

// y[i]: how many of the sorted x[count] are smaller than values[i]; `right`: or equal.
void search_sorted(DataType type, const void* x, std::int64_t count, const void* values, std::uint32_t* y, std::int64_t n,
                   bool right);

}  // namespace sdx::cpu
