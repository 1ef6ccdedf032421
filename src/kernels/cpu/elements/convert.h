#pragma once
// Conversions that the engine lacks.

#include <sdx/tensor.hpp>

namespace sdx::cpu {

// y = x, of y's type. Complex numbers lose their imaginary part, but for booleans: true where either part differs from 0. Split
// over current_pool().
void convert(const Tensor& x, Tensor& y);

// float8 (E4M3 without infinities) in bytes; larger numbers become the largest.
void to_float8(const Tensor& x, Tensor& y);
void from_float8(const Tensor& x, Tensor& y);

}  // namespace sdx::cpu
