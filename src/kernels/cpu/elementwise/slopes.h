#pragma once
// Gradients of activation functions in float: dx = dy * slope, where the slope is known from the input x or the result y. The
// contract is that of elementwise.h: any alignment, dx may be dy or the other operand, thread-safe, split over current_pool().

#include <cstdint>

namespace sdx::cpu {

// Computed from y: relu, leaky_relu (alpha not negative), sigmoid, tanh. Computed from x: gelu, gelu_tanh, quick_gelu (x *
// sigmoid(alpha x)), and relu, too.
enum class Slope : std::uint8_t { leaky_relu, sigmoid, tanh, gelu, gelu_tanh, quick_gelu };

void slope_f32(Slope op, float alpha, const float* dy, const float* saved, float* dx, std::int64_t n);

// dx = dy * factor if the mask is not 0, else 0.
void masked_f32(const float* dy, const std::uint8_t* mask, float factor, float* dx, std::int64_t n);

}  // namespace sdx::cpu
