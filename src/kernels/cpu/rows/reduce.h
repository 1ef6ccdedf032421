#pragma once
// Reductions over tensors seen as [outer, axis, inner]; y is [outer, inner]. Dense, aligned to their elements, no overlap.
// Thread-safe, split over current_pool(). axis >= 1.

#include <cstdint>

#include <sdx/dtype.hpp>

#include "base/tools_api.h"

namespace sdx::cpu {

// norm: the root of the sum of squares.
enum class Reduce : std::uint8_t { sum, mean, max, min, sum_square, sum_abs, norm, product, log_sum, log_sum_exp };

// Sums run in several float lanes, restarted every 4096 elements (columns: 512), so the error stays near that of pairwise
// summation; products in double. max and min return NaN if an element is NaN. norm neither overflows nor underflows on the way.
void reduce_f32(Reduce op, const float* x, float* y, std::int64_t outer, std::int64_t axis, std::int64_t inner);

// Long rows are reduced in parts of this many elements, which are then joined: the result is the same bit for bit, whichever
// threads compute the parts. For sum, mean, max, min, sum_square and sum_abs.
inline constexpr std::int64_t kReducePart = 4096;
bool reduces_in_parts(Reduce op);
// Reduces one part, n <= kReducePart.
float reduce_part_f32(Reduce op, const float* x, std::int64_t n);
// Joins all parts of a row of n elements, in order.
float join_parts_f32(Reduce op, const float* parts, std::int64_t count, std::int64_t n);

// Positions along the axis of the largest (max) or smallest elements: of equal ones the first, or the last; NaN, first or last
// likewise, beats any number. axis below 2^31.
SDX_TOOLS_API void arg_extreme_f32(const float* x, std::int64_t* y, std::int64_t outer, std::int64_t axis, std::int64_t inner,
                                   bool max, bool last);

}  // namespace sdx::cpu
