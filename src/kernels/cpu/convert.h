#pragma once
// Bulk conversion between float and its 16-bit forms; bit patterns as std::uint16_t. Any alignment; no overlap. Thread-safe,
// split over current_pool(). Rounding is to nearest even, overflow gives infinity, NaN stays NaN.

#include <cstdint>

namespace sdx::cpu {

void half_to_f32(const void* x, float* y, std::int64_t n);
void f32_to_half(const float* x, void* y, std::int64_t n);
void bfloat_to_f32(const void* x, float* y, std::int64_t n);
void f32_to_bfloat(const float* x, void* y, std::int64_t n);

}  // namespace sdx::cpu
