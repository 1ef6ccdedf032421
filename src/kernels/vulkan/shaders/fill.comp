// y[i] = the same word
#version 450
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
layout(local_size_x = 256) in;
layout(push_constant, scalar) uniform Push {
  Words y;
  uint count, word;
} p;

void main() {
  uint i = invocation_number();
  if (i < p.count) p.y.at[i] = p.word;
}
