#pragma once
// The loops behind cast_elements() (convert.h) for one instruction set; single-threaded ranges.

#include <cstdint>

#include <sdx/dtype.hpp>

namespace sdx::cpu {

using CastRow = void (*)(const void* x, void* y, std::int64_t n);

// Null unless both types are among float32, float64, int32, int64, int8, uint8 and bool, and differ, or are a pair by which the
// other types are reached: int16, uint16 and int32, uint32 and int64, uint64 and the floats.
CastRow cast_row(DataType from, DataType to);

// float64 to the float32 that a further rounding, to fewer bits, brings where one rounding would: inexact results get an odd last
// bit. Source: Boldo and Melquiond, "When double rounding is odd", 2005.
CastRow odd_row();

}  // namespace sdx::cpu
