#pragma once
// float16 and bfloat16 by way of float32.

#include "kernels/cpu/elementwise/convert.h"
#include "tensor/halves.h"

namespace sdx::cpu {

// `type` is float16 or bfloat16.
inline void widen(DataType type, const void* x, float* y, std::int64_t n) {
  type == DataType::float16 ? half_to_f32(x, y, n) : bfloat_to_f32(x, y, n);
}
inline void narrow(DataType type, const float* x, void* y, std::int64_t n) {
  type == DataType::float16 ? f32_to_half(x, y, n) : f32_to_bfloat(x, y, n);
}

}  // namespace sdx::cpu
