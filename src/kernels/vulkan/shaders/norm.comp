// Normalises rows: y = (x - mean) / sqrt(variance + epsilon) * scale + bias, where x may be the sum of two or three tensors. Element i
// of row r has the scale number (r % row_modulus) * row_factor + i / run: LayerNormalization, InstanceNormalization and
// GroupNormalization by turns.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "functions.glsl"
#include "rows.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 1) const bool kCentered = true;  // false: by the mean square
layout(constant_id = 2) const bool kScale = true;
layout(constant_id = 3) const bool kBias = true;
layout(constant_id = 4) const bool kSkip = false;      // x + skip
layout(constant_id = 5) const bool kSkipBias = false;  // + a vector
layout(constant_id = 6) const bool kStoreSum = false;
layout(push_constant, scalar) uniform Push {
  Floats x, y, scale, bias, skip, skip_bias, sum;
  uint rows, extent, row_modulus, row_factor, run, skip_count;
  float epsilon;
} p;

float input_of(uint row, uint i) {
  uint at = row * p.extent + i;
  float x = p.x.at[at];
  if (kSkip) x += p.skip.at[at % p.skip_count];
  if (kSkipBias) x += p.skip_bias.at[i];
  return x;
}

void main() {
  uint row = row_number();
  uint end = row < p.rows ? p.extent : 0;
  float mean = 0.0;
  if (kCentered) {
    float sum = 0.0;
    for (uint i = lane(); i < end; i += kLanes) sum += input_of(row, i);
    mean = sum_of_lanes(sum) / float(p.extent);
  }
  float squares = 0.0;
  for (uint i = lane(); i < end; i += kLanes) {
    float d = input_of(row, i) - mean;
    squares += d * d;
  }
  float inverse = 1.0 / sqrt(sum_of_lanes(squares) / float(p.extent) + p.epsilon);
  for (uint i = lane(); i < end; i += kLanes) {
    float x = input_of(row, i);
    uint which = row % p.row_modulus * p.row_factor + i / p.run;
    float y = (x - mean) * inverse;
    if (kScale) y *= p.scale.at[which];
    if (kBias) y += p.bias.at[which];
    p.y.at[row * p.extent + i] = y;
    if (kStoreSum) p.sum.at[row * p.extent + i] = x;
  }
}
