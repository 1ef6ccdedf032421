// Every result is a weighted sum of `taps_y` x `taps_x` neighbours. The table has, one after the other, the first row for each row of the
// result, the first column for each column, and their weights.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
layout(local_size_x = 256) in;
layout(push_constant, scalar) uniform Push {
  Floats x, y;
  Words table;
  uint count, height, width, out_height, out_width, taps_y, taps_x;
} p;

void main() {
  uint i = invocation_number();
  if (i >= p.count) return;
  uint column = i % p.out_width, rest = i / p.out_width;
  uint row = rest % p.out_height, plane = rest / p.out_height * p.height * p.width;
  uint first_y = p.table.at[row], first_x = p.table.at[p.out_height + column];
  uint weights = p.out_height + p.out_width;
  float sum = 0.0;
  for (uint ty = 0; ty < p.taps_y; ++ty) {
    float weight_y = uintBitsToFloat(p.table.at[weights + row * p.taps_y + ty]);
    if (weight_y == 0.0) continue;  // 0 times infinity is NaN
    for (uint tx = 0; tx < p.taps_x; ++tx) {
      float weight = weight_y * uintBitsToFloat(p.table.at[weights + p.out_height * p.taps_y + column * p.taps_x + tx]);
      if (weight != 0.0) sum += weight * p.x.at[plane + (first_y + ty) * p.width + first_x + tx];
    }
  }
  p.y.at[i] = sum;
}
