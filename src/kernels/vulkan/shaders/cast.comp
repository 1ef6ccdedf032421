// Numbers of one type as numbers of another. 64-bit integers are two words, the lower one first; truth values are bytes.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "functions.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint kFrom = 0;  // 0: float32, 1: int32, 2: int64, 3: bool
layout(constant_id = 1) const uint kTo = 0;    // the same without bool
layout(push_constant, scalar) uniform Push {
  Words x, y;
  uint count;
} p;

void main() {
  uint i = invocation_number();
  if (i >= p.count) return;
  if (kFrom == 0) {
    float x = uintBitsToFloat(p.x.at[i]);
    if (is_nan(x)) x = 0.0;
    x = trunc(x);
    if (kTo == 1) {
      p.y.at[i] = x >= 2147483648.0 ? 0x7FFFFFFFu : x < -2147483648.0 ? 0x80000000u : uint(int(x));
      return;
    }
    float a = min(abs(x), 9223371487098961920.0);  // the largest below 2^63
    bool over = x >= 9223372036854775808.0, under = x <= -9223372036854775808.0;
    uint high = uint(floor(a / 4294967296.0)), low = uint(a - float(high) * 4294967296.0);
    if (x < 0.0) {
      low = ~low + 1u;
      high = ~high + (low == 0u ? 1u : 0u);
    }
    p.y.at[2 * i] = over ? 0xFFFFFFFFu : under ? 0u : low;
    p.y.at[2 * i + 1] = over ? 0x7FFFFFFFu : under ? 0x80000000u : high;
    return;
  }
  uint low, high;
  if (kFrom == 1) {
    low = p.x.at[i];
    high = int(low) < 0 ? 0xFFFFFFFFu : 0u;
  } else if (kFrom == 2) {
    low = p.x.at[2 * i];
    high = p.x.at[2 * i + 1];
  } else {
    low = (p.x.at[i / 4] >> (8 * (i % 4)) & 0xFFu) != 0u ? 1u : 0u;
    high = 0u;
  }
  if (kTo == 0) {
    bool narrow = high == (int(low) < 0 ? 0xFFFFFFFFu : 0u);
    p.y.at[i] = floatBitsToUint(narrow ? float(int(low)) : float(int(high)) * 4294967296.0 + float(low));
  } else if (kTo == 1) {
    p.y.at[i] = low;
  } else {
    p.y.at[2 * i] = low;
    p.y.at[2 * i + 1] = high;
  }
}
