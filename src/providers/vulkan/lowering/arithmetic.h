#pragma once
// Arithmetic of two operands, for lowerings that are made of it.

#include "providers/vulkan/emitter.h"

namespace sdx::vulkan {

// z = f(x, y) with broadcasting to `out`, of at most kMostAxes axes that differ.
void emit_two(Emitter& e, Pair pair, Operand x, const Shape& x_shape, Operand y, const Shape& y_shape, Operand z,
              const Shape& out);

}  // namespace sdx::vulkan
