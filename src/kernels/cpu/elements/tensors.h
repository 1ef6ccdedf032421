#pragma once
// Functions of tensors' elements, for any rank and for complex numbers, too. For arrays; the engine calls elementwise.h.

#include <sdx/tensor.hpp>

#include "kernels/cpu/elements/functions.h"

namespace sdx::cpu {

// y = fn(x); y has result_type_of() and x's shape. As in elementwise.h, Error(not_implemented) says that a type has no function.
void apply(UnaryFn fn, const Tensor& x, Tensor& y);
// Operands are of one type and broadcast to y's shape.
void apply(BinaryFn fn, const Tensor& a, const Tensor& b, Tensor& y);
// a, b and y are of one type; all broadcast to y's shape.
void select(const Tensor& condition, const Tensor& a, const Tensor& b, Tensor& y);

}  // namespace sdx::cpu
