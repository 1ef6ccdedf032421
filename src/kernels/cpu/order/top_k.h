#pragma once
// The first elements of lanes in sorted order: TopK.

#include <cstddef>
#include <cstdint>

#include <sdx/dtype.hpp>

namespace sdx::cpu {

struct TopK {
  DataType type = DataType::undefined;  // an integer, float32 or float64
  std::int64_t n = 0, k = 0;            // 1 <= k <= n < 2^32
  std::int64_t step = 1;                // between elements, of the operand and of what is found
  bool largest = true;
};

bool has_top_k(DataType type);
std::size_t top_k_bytes(const TopK& shape);

// The k largest elements of a lane, the largest first, or the smallest ones: NaN counts as larger than everything; equal elements
// keep their order. `values` and `indices` may be null. `scratch`: top_k_bytes() bytes, aligned to 8. Runs on the calling thread
// only.
void top_k(const TopK& shape, const void* x, void* values, std::int64_t* indices, void* scratch);

// The same in float32 for `columns` neighbours at x, whose n elements are `step` apart; n < 2^31, 1 <= k <=
// kMostTopColumns. What is found also lies `step` apart in values and indices, each of which may be null. Runs on the calling
// thread only.
inline constexpr std::int64_t kMostTopColumns = 16;
void top_k_columns_f32(const float* x, std::int64_t n, std::int64_t step, std::int64_t columns, std::int64_t k, bool largest,
                       float* values, std::int64_t* indices);

}  // namespace sdx::cpu
