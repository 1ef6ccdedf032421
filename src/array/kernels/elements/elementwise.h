#pragma once
// Functions of elements over whole tensors, of all types that arrays have.

#include <array>
#include <cstdint>

#include <sdx/tensor.hpp>

#include "array/kernels/elements/functions.h"

namespace sdx::array::detail {

// The type of fn's results for operands of `type`: bool for predicates, real numbers for the size and the parts of complex ones.
DataType result_type_of(UnaryFn fn, DataType type);
DataType result_type_of(BinaryFn fn, DataType type);

// y = fn(x); y is of result_type_of() and x's shape. Split over current_pool(). Throws Error(not_implemented) where the type has
// no such function.
void apply(UnaryFn fn, const Tensor& x, Tensor& y);
// y = fn(a, b) of operands of one type that broadcast to y's shape.
void apply(BinaryFn fn, const Tensor& a, const Tensor& b, Tensor& y);
// y = condition ? a : b, broadcast; a, b and y are of one type.
void select(const Tensor& condition, const Tensor& a, const Tensor& b, Tensor& y);

}  // namespace sdx::array::detail
