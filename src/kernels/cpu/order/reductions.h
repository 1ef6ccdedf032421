#pragma once
// ONNX's reductions of integers and float64 over one or more groups of axes, one after the other. Partial results have a type of
// their own, so that only the last step rounds. Split over current_pool().

#include <cstdint>

#include <sdx/dtype.hpp>

#include "kernels/cpu/order/reduce.h"
#include "kernels/cpu/rows/reduce.h"

namespace sdx::cpu {

// Integers and float64; extremes of booleans, too.
bool reduces_typed(Reduce op, DataType type);

// Of partial results: the type itself for sums, which wrap around, products and extremes; 64 bits for means of integers; float64
// for norms and logarithms.
DataType partial_type(Reduce op, DataType type);

// y[outer, inner] of partial_type() from x[outer, count, inner] of `type`; extents >= 1. Extremes, of float32, too,
// are NaN if an element is.
void reduce_typed(Reduce op, DataType type, const void* x, void* y, const Lanes& extents);
// The same from partial results.
void reduce_partial(Reduce op, DataType type, const void* x, void* y, const Lanes& extents);

// Whether partial results differ from results.
bool has_last_step(Reduce op, DataType type);
// y[n] of `type` from partial results of `count` elements each. y may be x where the types are equally wide.
void reduce_last_step(Reduce op, DataType type, const void* x, void* y, std::int64_t n, std::int64_t count);

}  // namespace sdx::cpu
