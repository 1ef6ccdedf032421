#pragma once
// What the gradients of convolutions and of pooling share.

#include <algorithm>
#include <string>
#include <vector>

#include "ops/gradient.h"

namespace sdx::ops {

struct Windows {
  std::vector<std::int64_t> strides, dilations, pads;  // pads: beginnings, then ends
  std::size_t axes() const { return strides.size(); }
};

// The node's, for an input x of known rank. `kernel`: weights [_, _, …], or null where the node has kernel_shape. Refuses
// auto_pad SAME_* where extents are not known.
Windows windows_of(GradientContext& c, Expr x, Expr kernel);

// 2, 3, …: the axes behind batch and channels.
std::vector<std::int64_t> inner_axes(std::size_t count);

// The gradient of the input x, of which only the extents from axis 2 on count, of a convolution with that kernel.
Expr spread(GradientContext& c, const Windows& w, std::int64_t group, Expr g, Expr kernel, Expr x);

}  // namespace sdx::ops
