#pragma once
// Translates ONNX's attributes and shapes to those of convolution kernels.

#include <vector>

#include "kernels/cpu/conv/plain/conv.h"
#include "ops/conv/conv_geometry.h"
#include "ops/conv/signatures.h"

namespace sdx::cpu {

// At most three spatial axes, counted from the innermost.
inline void set_axes(ConvShape& s, const std::vector<ops::WindowAxis>& axes) {
  const std::size_t shift = 3 - axes.size();
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const ops::WindowAxis& a = axes[i];
    s.in[shift + i] = a.in;
    s.out[shift + i] = a.out;
    s.kernel[shift + i] = a.kernel;
    s.stride[shift + i] = a.stride;
    s.dilation[shift + i] = a.dilation;
    s.pad[shift + i] = a.pad_begin;
  }
}

inline ConvShape conv_shape(const ops::ConvGeometry& g) {
  ConvShape s;
  s.batch = g.batch;
  s.in_channels = g.in_channels;
  s.out_channels = g.out_channels;
  s.groups = g.groups;
  set_axes(s, g.axes);
  return s;
}

// The part of a shape that packing needs: everything but batch, extents and padding.
inline ConvShape packing_shape(const Attributes& attrs, const Shape& w, bool transposed) {
  const std::size_t spatial = w.size() - 2;
  const ops::WindowAttrs window = ops::read_window_attrs(attrs, spatial, std::vector<std::int64_t>(w.begin() + 2, w.end()));
  ConvShape s;
  s.groups = ops::group_of(attrs);
  s.in_channels = transposed ? w[0] : w[1] * s.groups;
  s.out_channels = transposed ? w[1] * s.groups : w[0];
  const std::size_t shift = 3 - spatial;
  for (std::size_t i = 0; i < spatial; ++i) {
    s.kernel[shift + i] = window.kernel[i];
    s.stride[shift + i] = window.strides[i];
    s.dilation[shift + i] = window.dilations[i];
  }
  return s;
}

}  // namespace sdx::cpu
