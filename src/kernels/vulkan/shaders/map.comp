// y[i] = f(x[i])
#version 450
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "functions.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint kFunction = 0;
layout(push_constant, scalar) uniform Push {
  Floats x, y;
  uint count;
  float alpha, beta, gamma;
} p;

void main() {
  uint i = invocation_number();
  if (i < p.count) p.y.at[i] = function_of(kFunction, p.x.at[i], p.alpha, p.beta, p.gamma);
}
