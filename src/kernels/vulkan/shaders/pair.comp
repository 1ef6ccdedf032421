// z[i] = f(x[...], y[...]) with broadcasting: each operand has a step for each axis of the result, 0 where it repeats.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "functions.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint kPair = 0;
layout(push_constant, scalar) uniform Push {
  Floats x, y, z;
  uint count, axes;
  uint extent[6], step_x[6], step_y[6];
} p;

// As C's pow, which Vulkan leaves open for negative bases.
float power_of(float x, float y) {
  if (y == 0.0 || x == 1.0) return 1.0;
  if (is_nan(x) || is_nan(y)) return uintBitsToFloat(0x7FC00000u);
  if (y == 2.0) return x * x;
  if (y == 1.0) return x;
  if (y == 0.5 && !isinf(x)) return sqrt(x);
  if (x == 0.0) {
    bool odd = abs(y) < 16777216.0 && floor(y) == y && (int(abs(y)) & 1) == 1;
    bool negative = (floatBitsToUint(x) >> 31) == 1u && odd;
    float r = y > 0.0 ? 0.0 : uintBitsToFloat(0x7F800000u);
    return negative ? -r : r;
  }
  float a = abs(x);
  float r;
  float rounded = floor(y);
  if (rounded == y && abs(y) <= 16.0) {  // by multiplication: exact where the result is
    int n = int(abs(y));
    r = 1.0;
    float square = a;
    for (; n > 0; n >>= 1) {
      if ((n & 1) == 1) r *= square;
      square *= square;
    }
    if (y < 0.0) r = 1.0 / r;
  } else {
    r = exp2(y * log2(a));
  }
  if (x > 0.0) return r;
  if (rounded != y && !isinf(y)) return isinf(x) ? r : uintBitsToFloat(0x7FC00000u);
  bool odd = abs(y) < 16777216.0 && (int(abs(y)) & 1) == 1;
  return odd ? -r : r;
}

float pair_of(float x, float y) {
  switch (kPair) {
    case 0: return x + y;
    case 1: return x - y;
    case 2: return x * y;
    case 3: return x / y;
    case 4: return is_nan(x) ? x : is_nan(y) ? y : min(x, y);
    case 5: return is_nan(x) ? x : is_nan(y) ? y : max(x, y);
    case 6: return power_of(x, y);
    case 7: return x >= 0.0 ? x : x * y;
  }
  return x;
}

void main() {
  uint i = invocation_number();
  if (i >= p.count) return;
  uint at_x = 0, at_y = 0, rest = i;
  for (uint d = p.axes; d-- > 0;) {
    uint here = d == 0 ? rest : rest % p.extent[d];
    rest /= p.extent[d];
    at_x += here * p.step_x[d];
    at_y += here * p.step_y[d];
  }
  p.z.at[i] = pair_of(p.x.at[at_x], p.y.at[at_y]);
}
