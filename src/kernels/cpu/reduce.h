#pragma once
// Reductions in float over tensors seen as [outer, axis, inner]; y is [outer, inner]. Dense, float alignment, no overlap.
// Thread-safe, split over current_pool(). Sums run in several float lanes, restarted every 4096 elements, so the error stays
// near that of pairwise summation. max and min return NaN if an element is NaN. axis >= 1.

#include <cstdint>

namespace sdx::cpu {

enum class Reduce : std::uint8_t { sum, mean, max, min, sum_square, sum_abs };

void reduce_f32(Reduce op, const float* x, float* y, std::int64_t outer, std::int64_t axis, std::int64_t inner);

}  // namespace sdx::cpu
