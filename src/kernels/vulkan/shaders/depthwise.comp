// A convolution of few channels per group: an invocation per element of the result.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "functions.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 2) const uint kActivation = 0;
layout(constant_id = 3) const bool kBias = false;
layout(constant_id = 4) const bool kResidual = false;
layout(push_constant, scalar) uniform Push {
  Floats x, w, y, bias, residual;
  uint m, n, k, groups;
  uint channels, height, width, kernel_height, kernel_width, out_width;
  uint stride_y, stride_x, dilation_y, dilation_x;
  int pad_y, pad_x;
  float f_alpha, f_beta;
  uint count;
} p;

void main() {
  uint i = invocation_number();
  if (i >= p.count) return;
  uint at = i % p.n, rest = i / p.n;
  uint m = rest % p.m, z = rest / p.m;  // z: picture and group
  uint filters = (z % p.groups * p.m + m) * p.k;
  int first_y = int(at / p.out_width * p.stride_y) - p.pad_y, first_x = int(at % p.out_width * p.stride_x) - p.pad_x;
  float sum = 0.0;
  for (uint c = 0; c < p.channels; ++c) {
    uint plane = (z * p.channels + c) * p.height * p.width;
    for (uint ky = 0; ky < p.kernel_height; ++ky) {
      int y = first_y + int(ky * p.dilation_y);
      if (y < 0 || y >= int(p.height)) continue;
      for (uint kx = 0; kx < p.kernel_width; ++kx) {
        int x = first_x + int(kx * p.dilation_x);
        if (x < 0 || x >= int(p.width)) continue;
        sum += p.x.at[plane + uint(y) * p.width + uint(x)] * p.w.at[filters + (c * p.kernel_height + ky) * p.kernel_width + kx];
      }
    }
  }
  if (kBias) sum += p.bias.at[z % p.groups * p.m + m];
  if (kResidual) sum += p.residual.at[i];
  p.y.at[i] = function_of(kActivation, sum, p.f_alpha, p.f_beta, 1.0);
}
