#pragma once
// Transcendental functions and remainders of float32. The contract is that of elementwise.h: any alignment, in place allowed,
// thread-safe, split over current_pool(). NaN gives NaN.

#include <cstdint>

#include "kernels/cpu/elementwise/broadcast_rows.h"

namespace sdx::cpu {

// Accuracy against the exact result: exp and erf within 2 ulp, sin and cos 2.5, atan, asin and acos 3, tanh 6. sin and cos take
// any argument: in vectors below 8192 (131072 with FMA), else by the C library. asin and acos give NaN beyond 1.
enum class Math : std::uint8_t { exp, tanh, erf, sin, cos, atan, asin, acos };

// y[i] = f(x[i]) for i < n.
void math_f32(Math op, const float* x, float* y, std::int64_t n);

// The remainder of a / b: `fmod` is exact, with the sign of a; `modulo` has the sign of b (ONNX Mod-28).
enum class Remainder : std::uint8_t { fmod, modulo };
void remainder_f32(Remainder op, const RowPlan<2>& plan, const float* a, const float* b, float* y);

}  // namespace sdx::cpu
