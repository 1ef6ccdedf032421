#pragma once
// Which outputs and taps of a window operation lie inside the input; internal to the convolutions.

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/simd/cuts.h"

namespace sdx::cpu {

// One tap that moves by one pixel.
inline bool pointwise_window(const ConvShape& s) {
  for (int i = 1; i < 3; ++i) {
    if (s.kernel[i] != 1 || s.stride[i] != 1 || s.pad[i] != 0) return false;
  }
  return true;
}

// Output pixels are input pixels.
inline bool pointwise(const ConvShape& s) {
  for (int i = 1; i < 3; ++i) {
    if (s.kernel[i] != 1 || s.stride[i] != 1 || s.pad[i] != 0 || s.in[i] != s.out[i]) return false;
  }
  return true;
}

// Axis a of a window operation: which taps of output o lie inside the input, and which outputs have all their taps inside.
struct Span {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return std::max<std::int64_t>(0, end - begin); }
};

inline Span taps_inside(const ConvShape& s, int a, std::int64_t o) {
  const std::int64_t start = o * s.stride[a] - s.pad[a];
  Span t;
  t.begin = start < 0 ? std::min(s.kernel[a], up_div(-start, s.dilation[a])) : 0;
  t.end = s.in[a] > start ? std::min(s.kernel[a], up_div(s.in[a] - start, s.dilation[a])) : 0;
  t.end = std::max(t.begin, t.end);
  return t;
}

inline Span whole_windows(const ConvShape& s, int a) {
  const std::int64_t reach = s.in[a] - 1 - (s.kernel[a] - 1) * s.dilation[a] + s.pad[a];
  Span o;
  o.begin = std::min(s.out[a], s.pad[a] > 0 ? up_div(s.pad[a], s.stride[a]) : 0);
  o.end = reach < 0 ? o.begin : std::clamp(reach / s.stride[a] + 1, o.begin, s.out[a]);
  return o;
}

}  // namespace sdx::cpu
