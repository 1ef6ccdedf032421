#pragma once
// Sums of rows by place: the gradient of gathering rows from a table.

#include <cstdint>

namespace sdx::cpu {

// y, [outer, extent, run], is the sum of x's rows, [outer, count, run], by place: row i of x is added to row places[i], in
// [0, extent); rows without any are 0. Dense; float alignment. Each row is summed in the order of `places`. Thread-safe, split
// over current_pool().
void scatter_rows_f32(const float* x, const std::int64_t* places, std::int64_t outer, std::int64_t extent, std::int64_t count,
                      std::int64_t run, float* y);

}  // namespace sdx::cpu
