#pragma once
// Matrix products of all types of numbers, float32, 16-bit floats (computed in float32) and complex ones included; row-major
// without gaps. Thread-safe; split over current_pool().

#include <cstdint>
#include <vector>

#include <sdx/dtype.hpp>

#include "base/tools_api.h"

namespace sdx::cpu {

// c[m, n] = op(a)[m, k] op(b)[k, n]
struct Product {
  DataType type = DataType::float32;
  std::int64_t m = 0, n = 0, k = 0;
  bool trans_a = false, trans_b = false;
};
// Computes as many products as there are numbers: product i multiplies the matrices a_at[i] and b_at[i] (numbers of matrices)
// into matrix i of c.
SDX_TOOLS_API void multiply(const Product& p, const void* a, const void* b, void* c, const std::vector<std::int64_t>& a_at,
                            const std::vector<std::int64_t>& b_at);

}  // namespace sdx::cpu
