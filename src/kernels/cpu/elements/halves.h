#pragma once
// float16 and bfloat16 by way of float32.

#include "kernels/cpu/elementwise/convert.h"

namespace sdx::cpu {

inline bool is_half(DataType type) { return type == DataType::float16 || type == DataType::bfloat16; }

// `type` is one of the two.
inline void widen(DataType type, const void* x, float* y, std::int64_t n) {
  type == DataType::float16 ? half_to_f32(x, y, n) : bfloat_to_f32(x, y, n);
}
inline void narrow(DataType type, const float* x, void* y, std::int64_t n) {
  type == DataType::float16 ? f32_to_half(x, y, n) : f32_to_bfloat(x, y, n);
}

}  // namespace sdx::cpu
