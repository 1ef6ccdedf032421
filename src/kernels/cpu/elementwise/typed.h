#pragma once
// Elementwise kernels whose elements are not all float32: comparisons, logic, selection and integer arithmetic.
//
// Pointers are aligned to their elements. The output may be the same array as an operand with elements of the same width and even
// steps (in place) but must not overlap one otherwise. Thread-safe, split over current_pool(). No allocation.

#include <cstdint>
#include <optional>

#include <sdx/dtype.hpp>

#include "kernels/cpu/elementwise/broadcast_rows.h"

namespace sdx::cpu {

// u8 are bytes: bool and uint8. A bool is true if its byte is not 0.
enum class Elem : std::uint8_t { u8, i8, u16, i16, u32, i32, u64, i64, f32, f64 };
// Empty for types that these kernels do not support.
std::optional<Elem> elem_of(DataType type);

// Comparisons (all types) give bytes 0 and 1; comparisons with NaN are false. Logic (u8, as bools) gives 0 and 1. Arithmetic
// (integers and f64; div only f64) wraps around in integers; min and max give NaN if an operand is NaN.
enum class Pair : std::uint8_t { equal, less, less_equal, all, any, either, add, sub, mul, min, max, div };

// The function for rows of a pair of operands, which step by 0 or 1 elements; null if there is none.
using PairRow = void (*)(const void* a, std::int64_t a_step, const void* b, std::int64_t b_step, void* y, std::int64_t n);
PairRow pair_row(Pair op, Elem elem);

// y = op(a, b), operands as planned.
void pair_broadcast(Pair op, Elem elem, const RowPlan<2>& plan, const void* a, const void* b, void* y);

// negate, absolute (signed integers, f64) wrap around in integers; square_root (f64); logical_not (u8); is_nan and is_inf (f32)
// give bytes 0 and 1.
enum class Map : std::uint8_t { negate, absolute, square_root, logical_not, is_nan, is_inf, is_positive_inf, is_negative_inf };

using MapRow = void (*)(const void* x, void* y, std::int64_t n);
MapRow map_row(Map op, Elem elem);
void map_elements(Map op, Elem elem, const void* x, void* y, std::int64_t n);

// y = condition ? a : b for elements of 1, 2, 4 or 8 bytes, operands as planned in that order.
void select_broadcast(int bytes, const RowPlan<3>& plan, const std::uint8_t* condition, const void* a, const void* b, void* y);

}  // namespace sdx::cpu
