#pragma once
// The loops behind cast_elements() (convert.h) for one instruction set; single-threaded ranges.

#include <cstdint>

#include <sdx/dtype.hpp>

namespace sdx::cpu {

using CastRow = void (*)(const void* x, void* y, std::int64_t n);

// Null for types that are not among float32, float64, int32, int64, int8, uint8 and bool, and where both are one.
CastRow cast_row(DataType from, DataType to);

}  // namespace sdx::cpu
