// z = condition ? x : y in words, with broadcasting. The condition is bytes.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
layout(local_size_x = 256) in;
layout(push_constant, scalar) uniform Push {
  Words condition, x, y, z;
  uint count, axes;
  uint extent[5], step_condition[5], step_x[5], step_y[5];
} p;

void main() {
  uint i = invocation_number();
  if (i >= p.count) return;
  uint at = 0, at_x = 0, at_y = 0, rest = i;
  for (uint d = p.axes; d-- > 0;) {
    uint here = d == 0 ? rest : rest % p.extent[d];
    rest /= p.extent[d];
    at += here * p.step_condition[d];
    at_x += here * p.step_x[d];
    at_y += here * p.step_y[d];
  }
  bool holds = (p.condition.at[at / 4] >> (8 * (at & 3u)) & 0xFFu) != 0u;
  if (holds) {
    p.z.at[i] = p.x.at[at_x];
  } else {
    p.z.at[i] = p.y.at[at_y];
  }
}
