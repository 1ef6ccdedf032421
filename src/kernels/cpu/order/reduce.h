#pragma once
// Reductions of the middle extent of [outer, count, inner], and running ones along it; all types that arrays have.

#include <cstdint>

#include <sdx/dtype.hpp>

#include "base/tools_api.h"

namespace sdx::cpu {

enum class ReduceFn : std::uint8_t { sum, prod, max, min, all, any, mean, argmax, argmin };
enum class ScanFn : std::uint8_t { sum, prod, max, min, logaddexp };

struct Lanes {
  std::int64_t outer = 1, count = 1, inner = 1;
};

// The type of the results. Sums and products of integers: 32 bits, or 64 where the elements have 64; of booleans: int32. argmax
// and argmin: uint32. all and any take and give booleans; mean takes inexact numbers.
SDX_TOOLS_API DataType result_type_of(ReduceFn fn, DataType type);

// y[outer, inner] of result_type_of(). Halves are summed in float32. NaN is larger than any number and smaller than any. Split
// over current_pool(). Throws Error(not_implemented) where the type has no such reduction. count >= 1 for max, min, argmax and
// argmin.
SDX_TOOLS_API void reduce(ReduceFn fn, DataType type, const void* x, void* y, const Lanes& extents);

// y[outer, inner]: places of the largest or smallest numbers: of equal ones the first, or the last; NaN, first or last likewise,
// beats any number. 1 <= count < 2^32.
bool has_arg_extreme(DataType type);  // integers, float32 and float64
void arg_extreme(DataType type, bool largest, bool last, const void* x, std::int64_t* y, const Lanes& extents);

// y[outer, count, inner] of x's type: y[i] combines x[0 … i], or x[i …] where `reverse`; without x[i] itself unless `inclusive`.
SDX_TOOLS_API void scan(ScanFn fn, DataType type, const void* x, void* y, const Lanes& extents, bool reverse, bool inclusive);
// Products of float32 in float64, rounded once each.
void product_in_double(const float* x, float* y, const Lanes& extents, bool reverse, bool inclusive);

}  // namespace sdx::cpu
