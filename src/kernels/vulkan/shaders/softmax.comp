// Softmax and its logarithm, by rows.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "functions.glsl"
#include "rows.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 1) const bool kLogarithm = false;
layout(push_constant, scalar) uniform Push {
  Floats x, y;
  uint rows, extent, inner;
} p;

void main() {
  uint row = row_number();
  bool inside = row < p.rows;
  uint start = inside ? row_start(row, p.extent, p.inner) : 0;
  uint end = inside ? p.extent : 0;
  float most = uintBitsToFloat(0xFF800000u);
  for (uint i = lane(); i < end; i += kLanes) most = most_of(most, p.x.at[start + i * p.inner]);
  most = most_of_lanes(most);
  float sum = 0.0;
  for (uint i = lane(); i < end; i += kLanes) sum += exp_of(p.x.at[start + i * p.inner] - most);
  sum = sum_of_lanes(sum);
  float scale = 1.0 / sum, shift = most + log_of(sum);
  for (uint i = lane(); i < end; i += kLanes) {
    float x = p.x.at[start + i * p.inner];
    p.y.at[start + i * p.inner] = kLogarithm ? x - shift : exp_of(x - most) * scale;
  }
}
