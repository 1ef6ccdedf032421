#pragma once
// The loops behind cast_elements() (convert.h) for one instruction set; single-threaded ranges.

#include <cstdint>

#include <sdx/dtype.hpp>

namespace sdx::cpu {

using CastRow = void (*)(const void* x, void* y, std::int64_t n);

// Null unless both types are among float32, float64, int32, int64, int8, uint8 and bool, and differ.
CastRow cast_row(DataType from, DataType to);

}  // namespace sdx::cpu
