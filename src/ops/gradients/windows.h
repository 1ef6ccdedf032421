#pragma once
// Shared by the gradients of convolutions and of pooling.

#include <vector>

#include "ops/gradient.h"

namespace sdx::ops {

struct Windows {
  std::vector<std::int64_t> strides, dilations, pads;  // pads: beginnings, then ends
  // int64[axes]: the padding, where it follows from extents that are not known yet; `pads` are zeros then.
  Expr begins, ends;
  std::size_t axes() const { return strides.size(); }
};

// The node's, for an input x of known rank. `kernel`: weights [_, _, …], or null where the node has kernel_shape.
Windows windows_of(GradientContext& c, Expr x, Expr kernel);

// The same without padding.
Windows unpadded_windows(GradientContext& c, Expr x);

// x with the padding that is not in w.pads around it.
Expr padded(GradientContext& c, const Windows& w, Expr x, double value = 0);

// Splits the padding into w.begins and w.ends as auto_pad says; `total`: int64[axes].
void share_padding(GradientContext& c, Windows& w, Expr total);
// (taps - 1) * dilation + 1 along each axis: int64[axes].
Expr reach_of(GradientContext& c, const Windows& w, Expr kernel);

// 2, 3, …: the axes behind batch and channels.
std::vector<std::int64_t> inner_axes(std::size_t count);

// The gradient of the input x of a convolution with that kernel. Only x's extents from axis 2 on are read.
Expr spread(GradientContext& c, const Windows& w, std::int64_t group, Expr g, Expr kernel, Expr x);

}  // namespace sdx::ops
