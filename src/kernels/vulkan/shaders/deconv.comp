// A transposed convolution in two dimensions: each invocation gathers what reaches its element. W is [channels, m, kernel].
#version 450
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const bool kBias = false;
layout(push_constant, scalar) uniform Push {
  Floats x, w, y, bias;
  uint count, m, groups, channels;  // m, channels: of a group
  uint height, width, out_height, out_width, kernel_height, kernel_width;
  uint stride_y, stride_x, dilation_y, dilation_x;
  int pad_y, pad_x;
} p;

void main() {
  uint i = invocation_number();
  if (i >= p.count) return;
  int column = int(i % p.out_width), row = int(i / p.out_width % p.out_height);
  uint rest = i / p.out_width / p.out_height;
  uint m = rest % p.m, z = rest / p.m;  // z: picture and group
  float sum = 0.0;
  for (uint ky = 0; ky < p.kernel_height; ++ky) {
    int y = row + p.pad_y - int(ky * p.dilation_y);
    if (y < 0 || y % int(p.stride_y) != 0 || y / int(p.stride_y) >= int(p.height)) continue;
    for (uint kx = 0; kx < p.kernel_width; ++kx) {
      int x = column + p.pad_x - int(kx * p.dilation_x);
      if (x < 0 || x % int(p.stride_x) != 0 || x / int(p.stride_x) >= int(p.width)) continue;
      uint at = uint(y / int(p.stride_y)) * p.width + uint(x / int(p.stride_x));
      for (uint c = 0; c < p.channels; ++c) {
        uint filter_at = ((z % p.groups * p.channels + c) * p.m + m) * p.kernel_height + ky;
        sum += p.x.at[(z * p.channels + c) * p.height * p.width + at] * p.w.at[filter_at * p.kernel_width + kx];
      }
    }
  }
  if (kBias) sum += p.bias.at[z % p.groups * p.m + m];
  p.y.at[i] = sum;
}
