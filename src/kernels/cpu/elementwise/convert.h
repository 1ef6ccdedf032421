#pragma once
// Bulk conversion between float and its 16-bit forms; bit patterns as std::uint16_t. Any alignment; no overlap. Thread-safe,
// split over current_pool(). Rounding is to nearest even, overflow gives infinity, NaN stays NaN.

#include <cstdint>

#include <sdx/dtype.hpp>

#include "base/tools_api.h"

namespace sdx::cpu {

SDX_TOOLS_API void half_to_f32(const void* x, float* y, std::int64_t n);
SDX_TOOLS_API void f32_to_half(const float* x, void* y, std::int64_t n);
SDX_TOOLS_API void bfloat_to_f32(const void* x, float* y, std::int64_t n);
SDX_TOOLS_API void f32_to_bfloat(const float* x, void* y, std::int64_t n);

// Whether cast_elements() supports the pair: bool, integers of 8 to 64 bits, float16, bfloat16, float32 and float64.
bool can_cast(DataType from, DataType to);

// As in ops/math/convert.h: floats are truncated; those that int32 (for the types of 8 and 32 bits) or int64 cannot hold become
// the lowest number of that type; integers lose their high bits; bool is whether a number is not 0. x and y are aligned to their
// elements, except float16 and bfloat16; no overlap.
void cast_elements(DataType from, DataType to, const void* x, void* y, std::int64_t n);

}  // namespace sdx::cpu
