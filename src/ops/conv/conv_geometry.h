#pragma once
// The positions of windows in convolutions and poolings. Shared by reference kernels, fast kernels and quantised convolutions.
// Sources: ONNX Conv-22, ConvTranspose-22, MaxPool-22, AveragePool-22.

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include <sdx/tensor.hpp>

#include "base/checked.h"
#include "graph/attribute.h"
#include "graph/dim.h"

namespace sdx::ops {

enum class AutoPad : std::uint8_t { notset, same_upper, same_lower, valid };

// The attributes of a window operation, checked and with defaults filled in: one entry per spatial axis (pads: two).
// Every kernel extent, stride and dilation is in [1, 2^31), every pad in [0, 2^31), of convolutions in (-2^31, 2^31): a negative
// one crops.
struct WindowAttrs {
  std::vector<std::int64_t> kernel, strides, dilations;
  std::vector<std::int64_t> pads;  // all begins, then all ends; zeros unless auto_pad is notset
  AutoPad auto_pad = AutoPad::notset;
  bool ceil_mode = false;
  bool pools = false;  // the first window may reach beyond the padded input; see window_axis()
};

// One spatial axis with everything known. Output position o and tap k touch input position o*stride - pad_begin + k*dilation.
struct WindowAxis {
  std::int64_t in = 0, out = 0;
  std::int64_t kernel = 1, stride = 1, dilation = 1;
  std::int64_t pad_begin = 0, pad_end = 0;

  // Input position of tap 0 for output position o; negative inside the padding.
  std::int64_t start(std::int64_t o) const { return o * stride - pad_begin; }
};

// A half-open range; empty when begin >= end.
struct IndexRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end > begin ? end - begin : 0; }
};

// The taps of output position `o` that touch the input rather than the padding.
inline IndexRange taps_inside(const WindowAxis& a, std::int64_t o) {
  const std::int64_t s = a.start(o);
  const std::int64_t begin = s < 0 ? ceil_div(-s, a.dilation) : 0;
  const std::int64_t end = a.in > s ? std::min(a.kernel, ceil_div(a.in - s, a.dilation)) : 0;
  return {begin, std::max(begin, end)};
}

// The output positions for which tap `k` touches the input rather than the padding.
inline IndexRange outputs_inside(const WindowAxis& a, std::int64_t k) {
  const std::int64_t shift = k * a.dilation - a.pad_begin;  // input position for output 0
  const std::int64_t begin = std::min(a.out, shift < 0 ? ceil_div(-shift, a.stride) : 0);
  const std::int64_t end = a.in > shift ? std::min(a.out, ceil_div(a.in - shift, a.stride)) : 0;
  return {begin, std::max(begin, end)};
}

// Throws Error(invalid_model) for an unknown word.
AutoPad read_auto_pad(std::string_view word);

// Reads kernel_shape, strides, dilations, pads, auto_pad and ceil_mode for `spatial` axes. `kernel` is the weights' spatial
// extents: kernel_shape, if given, must agree; when `kernel` is empty, kernel_shape is required. Throws Error(invalid_model).
WindowAttrs read_window_attrs(const Attributes& attrs, std::size_t spatial, const std::vector<std::int64_t>& kernel = {},
                              std::int64_t least_pad = 0);
// The least pad of convolutions: a negative one crops.
constexpr std::int64_t kLeastPad = 1 - (std::int64_t{1} << 31);
// Whether `pads` has a negative number.
bool crops(const Attributes& attrs);

// Geometry of spatial axis `axis` for an input extent: explicit pads and output extent. With ceil_mode, windows that would
// start in the right padding are dropped. Throws Error(invalid_model) when the window of a convolution is larger than the padded
// input. A pooling has one window then, which is partial, or none where the window is larger by a stride or more; it is refused
// from two strides on.
WindowAxis window_axis(const WindowAttrs& w, std::size_t axis, std::int64_t in);
// The output extent alone, for an extent that may be symbolic.
Dim window_extent(const WindowAttrs& w, std::size_t axis, const Dim& in);

// A whole convolution with known shapes: X is [N, C, spatial...], W is [M, C/group, kernel...].
struct ConvGeometry {
  std::int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;
  std::vector<WindowAxis> axes;

  std::int64_t in_channels_per_group() const { return in_channels / groups; }
  std::int64_t out_channels_per_group() const { return out_channels / groups; }
  Shape output_shape() const;  // [N, M, out...]
  std::int64_t in_plane() const;
  std::int64_t out_plane() const;
  std::int64_t kernel_taps() const;
};

// Checks ranks, channels against group and weights, and everything that read_window_attrs() and window_axis() check.
ConvGeometry conv_geometry(const Attributes& attrs, const Shape& x, const Shape& w);
// The output shape as far as it is known; either shape may hold unknown extents. Throws Error(invalid_model).
SymShape conv_output_shape(const Attributes& attrs, const SymShape& x, const SymShape& w);

// The same for transposed convolutions: W is [C, M/group, kernel...]. In the result, `in` and `out` of each axis are the
// transposed convolution's own; input position i and tap k add into output position i*stride - pad_begin + k*dilation.
// Output positions that no window covers (output_padding, output_shape) hold the bias alone.
ConvGeometry conv_transpose_geometry(const Attributes& attrs, const Shape& x, const Shape& w);
SymShape conv_transpose_output_shape(const Attributes& attrs, const SymShape& x, const SymShape& w);

// The output shape of a pooling over X = [N, C, spatial...] as far as it is known.
SymShape pool_output_shape(const Attributes& attrs, const SymShape& x);
// One WindowAxis per spatial axis of X.
std::vector<WindowAxis> pool_axes(const Attributes& attrs, const Shape& x);
// Whether a window may lie in the padding only, so that its average is 0 / 0.
bool may_average_nothing(const WindowAttrs& w);

}  // namespace sdx::ops
