#pragma once
// Functions of elements for all types of real numbers, float16 and bfloat16 included, which are computed in float32 and rounded
// once. The contract is that of functions.h; pointers are aligned to their elements. Thread-safe, split over current_pool(). No
// allocation.

#include <cstdint>

#include <sdx/dtype.hpp>

#include "base/tools_api.h"
#include "kernels/cpu/elements/functions.h"
#include "kernels/cpu/elementwise/broadcast_rows.h"

namespace sdx::cpu {

// Whether the function exists for the type.
bool supports(UnaryFn fn, DataType type);
bool supports(BinaryFn fn, DataType type);

// y = fn(x) for n elements of `type`. Throws Error(not_implemented) where the type has no such function, as all of these do.
SDX_TOOLS_API void apply(UnaryFn fn, DataType type, const void* x, void* y, std::int64_t n);
// y = fn(a, b), operands as planned.
SDX_TOOLS_API void apply(BinaryFn fn, DataType type, const RowPlan<2>& plan, const void* a, const void* b, void* y);
// y = condition ? a : b for elements of 1, 2, 4, 8 or 16 bytes, operands as planned in that order.
SDX_TOOLS_API void select(int bytes, const RowPlan<3>& plan, const std::uint8_t* condition, const void* a, const void* b,
                          void* y);
// y = min(max(x, low), high) for n elements; NaN stays NaN. `low` and `high` point to one element or are null: no bound.
void clip(DataType type, const void* low, const void* high, const void* x, void* y, std::int64_t n);

// Whether any of n elements of an integer type is 0.
bool has_zero(DataType type, const void* x, std::int64_t n);

}  // namespace sdx::cpu
