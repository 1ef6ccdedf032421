#pragma once
// The per-target conversions behind convert.h; single-threaded ranges.

#include <cstdint>

namespace sdx::cpu {

struct ConvertKernels {
  void (*half_to_f32)(const void* x, float* y, std::int64_t n);
  void (*f32_to_half)(const float* x, void* y, std::int64_t n);
  void (*bfloat_to_f32)(const void* x, float* y, std::int64_t n);
  void (*f32_to_bfloat)(const float* x, void* y, std::int64_t n);
};

const ConvertKernels& convert_kernels();

}  // namespace sdx::cpu
