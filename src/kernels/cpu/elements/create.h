#pragma once
// Fills ranges and triangles.

#include <sdx/tensor.hpp>

namespace sdx::cpu {

// y[i] = start + i * step, of one type; computed from i, so that errors do not build up. float16 and bfloat16 are computed in
// float32, all other types in their own type.
void fill_range(const Tensor& start, const Tensor& step, Tensor& y);

// y[i, j] = j <= i + diagonal (int32); y is of booleans.
void fill_triangle(const Tensor& diagonal, Tensor& y);

}  // namespace sdx::cpu
