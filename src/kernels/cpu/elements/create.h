#pragma once
// Ranges and triangles.

#include <sdx/tensor.hpp>

namespace sdx::cpu {

// y[i] = start + i * step, of one type; computed from i, so that no error builds up. float16 and bfloat16 are computed in
// float32, all other types in themselves.
void fill_range(const Tensor& start, const Tensor& step, Tensor& y);

// y[i, j] = j <= i + diagonal (int32); y is of booleans.
void fill_triangle(const Tensor& diagonal, Tensor& y);

}  // namespace sdx::cpu
