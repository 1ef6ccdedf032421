#pragma once
// The inverse error function: Giles, "Approximating the erfinv function" (GPU Computing Gems, 2011), then Newton's method with
// Halley's correction in double precision.

namespace sdx::cpu {

// ±1 give infinities; beyond, NaN.
double inverse_erf(double x);
float inverse_erf(float x);

}  // namespace sdx::cpu
