// Truth values, which are bytes: an invocation computes the four of a word. Operands as in pair.comp.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "functions.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint kComparison = 0;
layout(constant_id = 1) const uint kType = 0;  // 0: float32, 1: int32, 2: int64, 3: bool
layout(push_constant, scalar) uniform Push {
  Words x, y, z;
  uint count, axes;
  uint extent[6], step_x[6], step_y[6];
} p;

uint byte_of(uint word, uint i) { return word >> (8 * (i & 3u)) & 0xFFu; }

// Bit 0: less, bit 1: equal, bit 2: greater; 0: one is NaN.
uint order_of(uint at_x, uint at_y) {
  if (kType == 0) {
    float x = uintBitsToFloat(p.x.at[at_x]), y = uintBitsToFloat(p.y.at[at_y]);
    if (is_nan(x) || is_nan(y)) return 0u;
    return x < y ? 1u : x == y ? 2u : 4u;
  }
  if (kType == 1) {
    int x = int(p.x.at[at_x]), y = int(p.y.at[at_y]);
    return x < y ? 1u : x == y ? 2u : 4u;
  }
  if (kType == 3) {
    uint x = byte_of(p.x.at[at_x / 4], at_x), y = byte_of(p.y.at[at_y / 4], at_y);
    return x < y ? 1u : x == y ? 2u : 4u;
  }
  int x = int(p.x.at[2 * at_x + 1]), y = int(p.y.at[2 * at_y + 1]);
  if (x != y) return x < y ? 1u : 4u;
  uint x_low = p.x.at[2 * at_x], y_low = p.y.at[2 * at_y];
  return x_low < y_low ? 1u : x_low == y_low ? 2u : 4u;
}

bool holds(uint at_x, uint at_y) {
  if (kComparison >= 5) {
    bool x = byte_of(p.x.at[at_x / 4], at_x) != 0u, y = byte_of(p.y.at[at_y / 4], at_y) != 0u;
    return kComparison == 5 ? x && y : kComparison == 6 ? x || y : kComparison == 7 ? x != y : !x;
  }
  uint order = order_of(at_x, at_y);
  uint wanted = kComparison == 0 ? 2u : kComparison == 1 ? 1u : kComparison == 2 ? 4u : kComparison == 3 ? 3u : 6u;
  return (order & wanted) != 0u;
}

void main() {
  uint word = invocation_number();
  if (word * 4 >= p.count) return;
  uint result = 0u;
  for (uint k = 0; k < 4; ++k) {
    uint i = word * 4 + k;
    if (i >= p.count) break;
    uint at_x = 0, at_y = 0, rest = i;
    for (uint d = p.axes; d-- > 0;) {
      uint here = d == 0 ? rest : rest % p.extent[d];
      rest /= p.extent[d];
      at_x += here * p.step_x[d];
      at_y += here * p.step_y[d];
    }
    if (holds(at_x, at_y)) result |= 1u << (8 * k);
  }
  p.z.at[word] = result;
}
