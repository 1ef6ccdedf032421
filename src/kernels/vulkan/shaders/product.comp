// c = f(alpha * a x b + bias + beta * residual), for each of batch_0 x batch_1 matrices. `bias` has an element per column, `residual`
// has steps of its own, 0 where it repeats.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "functions.glsl"
layout(push_constant, scalar) uniform Push {
  Floats a, b, c, bias, residual;
  uint m, n, k;
  uint a_row, a_column, b_row, b_column, z_row, z_column;
  uint batch_1, a_batch_0, a_batch_1, b_batch_0, b_batch_1;
  float alpha, beta, f_alpha, f_beta;
} p;

uint batch_a, batch_b;
float left_at(uint m, uint k) { return p.a.at[batch_a + m * p.a_row + k * p.a_column]; }
float right_at(uint k, uint n) { return p.b.at[batch_b + k * p.b_row + n * p.b_column]; }
#include "product.glsl"

void main() {
  uint z = gl_WorkGroupID.z;
  batch_a = z / p.batch_1 * p.a_batch_0 + z % p.batch_1 * p.a_batch_1;
  batch_b = z / p.batch_1 * p.b_batch_0 + z % p.batch_1 * p.b_batch_1;
  MULTIPLY(p.m, p.n, p.k)
  for (uint r = 0; r < kRows; ++r) {
    uint m = first_m + gl_LocalInvocationID.y + 16 * r;
    for (uint c = 0; c < kColumns; ++c) {
      uint n = first_n + gl_LocalInvocationID.x + 16 * c;
      if (m >= p.m || n >= p.n) continue;
      uint at = (z * p.m + m) * p.n + n;
      float sum = p.alpha * sums[r * kColumns + c];
      if (kBias) sum += p.bias.at[n];
      if (kResidual) sum += p.beta * p.residual.at[(z * p.m + m) * p.z_row + n * p.z_column];
      p.c.at[at] = function_of(kActivation, sum, p.f_alpha, p.f_beta, 1.0);
    }
  }
}
