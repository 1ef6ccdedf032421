// Reduces rows to one number each; the kinds are those of enum class Reduction in shaders.h.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "functions.glsl"
#include "rows.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 1) const uint kReduction = 0;
layout(push_constant, scalar) uniform Push {
  Floats x, y;
  uint rows, extent, inner;
} p;

float start_of() { return kReduction == 2 || kReduction == 3 ? uintBitsToFloat(0xFF800000u) : 0.0; }

float with(float sum, float x) {
  switch (kReduction) {
    case 2: return most_of(sum, x);
    case 3: return most_of(sum, -x);
    case 4: return sum + abs(x);
    case 5:
    case 6: return sum + x * x;
    case 8: return sum + exp_of(x);
  }
  return sum + x;
}

void main() {
  uint row = row_number();
  bool inside = row < p.rows;
  uint start = inside ? row_start(row, p.extent, p.inner) : 0;
  uint end = inside ? p.extent : 0;
  float sum = start_of();
  for (uint i = lane(); i < end; i += kLanes) sum = with(sum, p.x.at[start + i * p.inner]);
  bool extreme = kReduction == 2 || kReduction == 3;
  sum = extreme ? most_of_lanes(sum) : sum_of_lanes(sum);
  if (!inside || lane() != 0) return;
  switch (kReduction) {
    case 1: sum /= float(p.extent); break;
    case 3: sum = -sum; break;
    case 6: sum = sqrt(sum); break;
    case 7:
    case 8: sum = log_of(sum); break;
  }
  p.y.at[row] = sum;
}
