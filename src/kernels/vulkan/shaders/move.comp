// Copies words from one place to another, each with its own step for each axis: transposing, cutting, joining and repeating.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
layout(local_size_x = 256) in;
layout(push_constant, scalar) uniform Push {
  Words from, to;
  uint count, axes;
  uint extent[6];
  int step_from[6], step_to[6];
} p;

void main() {
  uint i = invocation_number();
  if (i >= p.count) return;
  int at_from = 0, at_to = 0;
  uint rest = i;
  for (uint d = p.axes; d-- > 0;) {
    int here = int(d == 0 ? rest : rest % p.extent[d]);
    rest /= p.extent[d];
    at_from += here * p.step_from[d];
    at_to += here * p.step_to[d];
  }
  p.to.at[at_to] = p.from.at[at_from];
}
