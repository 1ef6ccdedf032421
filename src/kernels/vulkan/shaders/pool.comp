// The largest or the mean element of each window, in two dimensions.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "functions.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const bool kMean = false;
layout(constant_id = 1) const bool kCountPadding = false;
layout(push_constant, scalar) uniform Push {
  Floats x, y;
  uint count, height, width, out_height, out_width, kernel_height, kernel_width;
  uint stride_y, stride_x, dilation_y, dilation_x;
  int pad_y, pad_x, end_y, end_x;  // where the padding begins (as a positive number) and ends
} p;

void main() {
  uint i = invocation_number();
  if (i >= p.count) return;
  uint plane = i / (p.out_height * p.out_width) * p.height * p.width;
  int first_y = int(i / p.out_width % p.out_height * p.stride_y) - p.pad_y;
  int first_x = int(i % p.out_width * p.stride_x) - p.pad_x;
  float most = uintBitsToFloat(0xFF800000u), sum = 0.0;
  uint read = 0, padded = 0;
  for (uint ky = 0; ky < p.kernel_height; ++ky) {
    int y = first_y + int(ky * p.dilation_y);
    for (uint kx = 0; kx < p.kernel_width; ++kx) {
      int x = first_x + int(kx * p.dilation_x);
      if (y < p.end_y && x < p.end_x) ++padded;
      if (y < 0 || x < 0 || y >= int(p.height) || x >= int(p.width)) continue;
      float value = p.x.at[plane + uint(y) * p.width + uint(x)];
      ++read;
      sum += value;
      most = is_nan(most) ? most : is_nan(value) ? value : max(most, value);
    }
  }
  p.y.at[i] = kMean ? sum / float(kCountPadding ? padded : read) : most;
}
