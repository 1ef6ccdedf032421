// A convolution in two dimensions as a product of the weights with the input's windows, which are read where they lie. Each workgroup
// in z computes one group of one picture.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "functions.glsl"
layout(push_constant, scalar) uniform Push {
  Floats x, w, y, bias, residual;
  uint m, n, k, groups;
  uint channels, height, width, kernel_height, kernel_width, out_width;
  uint stride_y, stride_x, dilation_y, dilation_x;
  int pad_y, pad_x;
  float f_alpha, f_beta;
} p;

uint picture, filters;
float left_at(uint m, uint k) { return p.w.at[filters + m * p.k + k]; }
float right_at(uint k, uint n) {
  uint kx = k % p.kernel_width, rest = k / p.kernel_width;
  uint ky = rest % p.kernel_height, c = rest / p.kernel_height;
  int y = int(n / p.out_width * p.stride_y + ky * p.dilation_y) - p.pad_y;
  int x = int(n % p.out_width * p.stride_x + kx * p.dilation_x) - p.pad_x;
  if (y < 0 || x < 0 || y >= int(p.height) || x >= int(p.width)) return 0.0;
  return p.x.at[picture + (c * p.height + uint(y)) * p.width + uint(x)];
}
#include "product.glsl"

void main() {
  uint z = gl_WorkGroupID.z;
  picture = z * p.channels * p.height * p.width;
  filters = z % p.groups * p.m * p.k;
  MULTIPLY(p.m, p.n, p.k)
  for (uint r = 0; r < kRows; ++r) {
    uint m = first_m + gl_LocalInvocationID.y + 16 * r;
    for (uint c = 0; c < kColumns; ++c) {
      uint n = first_n + gl_LocalInvocationID.x + 16 * c;
      if (m >= p.m || n >= p.n) continue;
      uint at = (z * p.m + m) * p.n + n;
      float sum = sums[r * kColumns + c];
      if (kBias) sum += p.bias.at[z % p.groups * p.m + m];
      if (kResidual) sum += p.residual.at[at];
      p.y.at[at] = function_of(kActivation, sum, p.f_alpha, p.f_beta, 1.0);
    }
  }
}
