// Functions of one number; their numbers are those of enum class Function in shaders.h. Vulkan promises little of its own functions
// (sin within 2^-11, tanh as a quotient of exponentials), so the ones that need more are written out here.

bool is_nan(float x) { return (floatBitsToUint(x) & 0x7FFFFFFFu) > 0x7F800000u; }

// Drivers may make numbers of NaN (SwiftShader's exp and log do).
float exp_of(float x) { return is_nan(x) ? x : exp(x); }
float log_of(float x) { return is_nan(x) ? x : x < 0.0 ? uintBitsToFloat(0x7FC00000u) : log(x); }

float tanh_of(float x) {
  float a = abs(x);
  if (is_nan(x)) return x;
  if (a > 9.1) return x < 0.0 ? -1.0 : 1.0;
  if (a < 0.35) {  // the series to x^11
    float s = x * x;
    return x * (1.0 + s * (-0.33333333333 + s * (0.13333333333 + s * (-0.05396825397 + s * (0.02186948854 - s * 0.00886323553)))));
  }
  float r = 1.0 - 2.0 / (exp(2.0 * a) + 1.0);
  return x < 0.0 ? -r : r;
}

// Below 1 the series to x^19; above, 1 minus Abramowitz and Stegun 7.1.26.
float erf_of(float x) {
  float a = abs(x);
  if (is_nan(x)) return x;
  if (a > 4.0) return x < 0.0 ? -1.0 : 1.0;
  if (a < 1.0) {
    float s = x * x;
    float sum = 1.0 / 685440.0 - s / 6894720.0;
    sum = -1.0 / 75600.0 + s * sum;
    sum = 1.0 / 9360.0 + s * sum;
    sum = -1.0 / 1320.0 + s * sum;
    sum = 1.0 / 216.0 + s * sum;
    sum = -1.0 / 42.0 + s * sum;
    sum = 1.0 / 10.0 + s * sum;
    sum = -1.0 / 3.0 + s * sum;
    return 1.1283791671 * x * (1.0 + s * sum);
  }
  float t = 1.0 / (1.0 + 0.3275911 * a);
  float r = 1.0 - t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))) * exp(-a * a);
  return x < 0.0 ? -r : r;
}

// Without overflow where exp(-x) has one.
float sigmoid_of(float x) {
  float e = exp(-abs(x));
  float r = 1.0 / (1.0 + e);
  return is_nan(x) ? x : x >= 0.0 ? r : e * r;
}

// exp(x) - 1; below 1/8 the series to x^6.
float expm1_of(float x) {
  if (abs(x) > 0.125) return exp(x) - 1.0;
  return x * (1.0 + x * (0.5 + x * (1.0 / 6.0 + x * (1.0 / 24.0 + x * (1.0 / 120.0 + x / 720.0)))));
}

// log(1 + x) for x in [0, 1]; below 1/16 the series to x^6.
float log1p_of(float x) {
  if (x > 0.0625) return log(1.0 + x);
  return x * (1.0 + x * (-0.5 + x * (1.0 / 3.0 + x * (-0.25 + x * (0.2 - x / 6.0)))));
}

// Taylor polynomials on [-pi/4, pi/4], after taking off a multiple of pi/2 in three parts.
float sine_of(float x, uint shift) {
  if (isinf(x) || is_nan(x)) return uintBitsToFloat(0x7FC00000u);
  float n = floor(x * 0.63661977237 + 0.5);
  float r = fma(n, -1.5703125, x);
  r = fma(n, -4.837512969970703125e-4, r);
  r = fma(n, -7.54978995489188e-8, r);
  uint quarter = (uint(int(n)) + shift) & 3u;
  float s = r * r;
  float sine = r * (1.0 + s * (-1.0 / 6.0 + s * (1.0 / 120.0 + s * (-1.0 / 5040.0 + s / 362880.0))));
  float cosine = 1.0 + s * (-0.5 + s * (1.0 / 24.0 + s * (-1.0 / 720.0 + s / 40320.0)));
  float value = (quarter & 1u) == 0u ? sine : cosine;
  return quarter >= 2u ? -value : value;
}

// alpha, beta, gamma: the function's coefficients.
float function_of(uint kind, float x, float alpha, float beta, float gamma) {
  switch (kind) {
    case 0: return x;
    case 1: return x < 0.0 ? 0.0 : x;
    case 2: return tanh_of(x);
    case 3: return sigmoid_of(x);
    case 4: return x >= 0.0 ? x : alpha * x;
    case 5: return x > alpha ? x : 0.0;
    case 6: return is_nan(x) ? x : min(max(alpha * x + beta, 0.0), 1.0);
    case 7: return is_nan(x) ? x : x * min(max(x / 6.0 + 0.5, 0.0), 1.0);
    case 8: return x < alpha ? alpha : x > beta ? beta : x;
    case 9: return x >= 0.0 ? x : alpha * expm1_of(x);
    case 10: return x * sigmoid_of(x);
    case 11: return 0.5 * x * (1.0 + erf_of(x * 0.70710678));
    case 12: return 0.5 * x * (1.0 + tanh_of(0.7978845608 * (x + 0.044715 * x * x * x)));
    case 13: return x * sigmoid_of(alpha * x);
    case 14: return x / (1.0 + abs(x));
    case 15: return is_nan(x) ? x : max(x, 0.0) + log1p_of(exp(-abs(x)));
    case 16: return gamma * (x >= 0.0 ? x : alpha * expm1_of(x));
    case 17: return x >= 0.0 ? x : alpha * expm1_of(x / alpha);
    case 18: return sqrt(x);
    case 19: return exp_of(x);
    case 20: return log_of(x);
    case 21: return -x;
    case 22: return abs(x);
    case 23: return erf_of(x);
    case 24: return sine_of(x, 0u);
    case 25: return sine_of(x, 1u);
    case 26: return 1.0 / x;
    case 27: return floor(x);
    case 28: return ceil(x);
    case 29: return roundEven(x);
    case 30: return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x;
    case 31: return is_nan(x) ? x : x * tanh_of(max(x, 0.0) + log1p_of(exp(-abs(x))));
  }
  return x;
}
