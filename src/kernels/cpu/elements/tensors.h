#pragma once
// Functions of elements of tensors: of any rank, complex numbers included. For arrays; the engine calls elementwise.h.

#include <sdx/tensor.hpp>

#include "kernels/cpu/elements/functions.h"

namespace sdx::cpu {

// y = fn(x), of result_type_of() and x's shape. As in elementwise.h, Error(not_implemented) says that a type has no function.
void apply(UnaryFn fn, const Tensor& x, Tensor& y);
// Of operands of one type that broadcast to y's shape.
void apply(BinaryFn fn, const Tensor& a, const Tensor& b, Tensor& y);
// a, b and y are of one type; all broadcast to y's shape.
void select(const Tensor& condition, const Tensor& a, const Tensor& b, Tensor& y);

}  // namespace sdx::cpu
