// conv1d to conv3d, conv_transpose1d to 3d, conv_general.

#include <algorithm>

#include <sdx/array.hpp>

#include "array/ops/common.h"
#include "array/ops/convolve/convolve.h"
#include "array/ops/index/slice.h"

namespace sdx::array {
namespace detail {
namespace {

using Ints = std::vector<std::int64_t>;

// Returns one number for each spatial axis.
Ints for_axes(const char* operation, const char* what, const Extents& given, std::size_t axes, int least) {
  if (given.size() != axes && given.size() != 1) {
    refuse(operation, "{} numbers as {}; expected {}", given.size(), what, axes == 1 ? "1" : fmt::format("1 or {}", axes));
  }
  Ints out;
  for (std::size_t i = 0; i < axes; ++i) {
    out.push_back(given.size() == 1 ? given[0] : given[i]);
    if (out.back() < least) refuse(operation, "{} {}; expected {} or more", what, out.back(), least);
  }
  return out;
}

struct Geometry {
  Ints stride, low, high, dilation, input_dilation;
  std::int64_t groups = 1;
};

// Checks the operands. With `axes` 0, there are as many spatial axes as the input has.
std::size_t check(const char* operation, const array& input, const array& weight, std::size_t axes, int groups) {
  const std::size_t rank = input.shape().size();
  if (axes == 0) axes = rank < 3 ? 0 : rank - 2;
  if (rank != axes + 2 || axes < 1 || axes > 3 || weight.shape().size() != rank) {
    refuse(operation, "input of shape {} and weights of shape {}; expected {} dimensions each", to_string(input.shape()),
           to_string(weight.shape()), axes < 1 || axes > 3 ? "3 to 5" : std::to_string(axes + 2));
  }
  const std::int64_t in = input.shape().back(), out = weight.shape()[0];
  if (groups < 1 || in % groups != 0 || out % groups != 0 || weight.shape().back() != in / groups) {
    refuse(operation, "{} channels and weights of shape {} do not fit {} group{}", in, to_string(weight.shape()), groups,
           groups == 1 ? "" : "s");
  }
  for (std::size_t i = 1; i <= axes; ++i) {
    if (weight.shape()[i] < 1) refuse(operation, "weights of shape {} have no taps", to_string(weight.shape()));
  }
  return axes;
}

Ints head_of(const Geometry& g, const Ints& low) {
  Ints h{static_cast<std::int64_t>(g.stride.size()), g.groups};
  h.insert(h.end(), g.stride.begin(), g.stride.end());
  h.insert(h.end(), g.dilation.begin(), g.dilation.end());
  h.insert(h.end(), low.begin(), low.end());
  return h;
}

// Converts both operands to the type in which convolutions are computed, and returns the type of the result.
Dtype settle_types(const char* operation, array& x, array& w, const StreamOrDevice& s) {
  const Dtype type = promote(x.dtype(), w.dtype());
  if (!is_floating(type)) refuse(operation, "operands of types {} and {}; expected floats", name(x.dtype()), name(w.dtype()));
  const Dtype inner = type == Dtype::float64 ? type : Dtype::float32;
  x = as_type(x, inner, s);
  w = as_type(w, inner, s);
  return type;
}

// Exchanges the channels of weights: [O, …, C / groups] becomes [C, …, O / groups].
array channels_swapped(const array& w, std::int64_t groups, const StreamOrDevice& s) {
  if (groups == 1) return swapaxes(w, 0, -1, s);
  const array apart = unflatten(w, 0, {groups, w.shape()[0] / groups}, s);
  return flatten(swapaxes(apart, 1, -1, s), 0, 1, s);
}

array flipped(const array& w, const StreamOrDevice& s) {
  std::vector<int> axes;
  for (int i = 1; i + 1 < w.ndim(); ++i) axes.push_back(i);
  return flip(w, axes, s);
}

array with_zeros_between(const array& x, const Ints& by, const StreamOrDevice& s) {
  Shape shape = x.shape();
  Steps steps{Shape(shape.size(), 0), Shape(shape.size(), 1)};
  for (std::size_t i = 0; i < by.size(); ++i) {
    shape[i + 1] = std::max<std::int64_t>(0, (shape[i + 1] - 1) * by[i] + 1);
    steps.step[i + 1] = by[i];
  }
  return shape == x.shape() ? x : unslice(x, shape, steps, s);
}

bool all_are(const Ints& v, std::int64_t value) {
  return std::all_of(v.begin(), v.end(), [&](std::int64_t e) { return e == value; });
}

// Tells whether each position stands by itself, so that the convolution is a matrix product.
bool is_product(const Geometry& g, const Shape& weight) {
  return g.groups == 1 && all_are(g.stride, 1) && all_are(g.low, 0) && all_are(g.high, 0) &&
         all_are(Ints(weight.begin() + 1, weight.end() - 1), 1);
}

array convolved(const char* operation, array x, array w, const Geometry& g, bool flip, const StreamOrDevice& s) {
  const Dtype type = settle_types(operation, x, w, s);
  const std::size_t axes = g.stride.size();
  Shape y{x.shape()[0]};
  Ints back(axes);  // the padding of the transpose
  bool transposes = !all_are(g.input_dilation, 1) && all_are(g.stride, 1);
  for (std::size_t i = 0; i < axes; ++i) {
    const std::int64_t extent = std::max<std::int64_t>(0, (x.shape()[i + 1] - 1) * g.input_dilation[i] + 1);
    const std::int64_t reach = (w.shape()[i + 1] - 1) * g.dilation[i] + 1;
    const std::int64_t room = extent + g.low[i] + g.high[i] - reach;
    if (room < 0) {
      refuse(operation, "weights of shape {} reach beyond the padded input of shape {}", to_string(w.shape()),
             to_string(x.shape()));
    }
    y.push_back(room / g.stride[i] + 1);
    back[i] = reach - 1 - g.low[i];
    transposes = transposes && back[i] >= 0;
  }
  y.push_back(w.shape()[0]);
  if (transposes) {
    Geometry t = g;
    t.stride = g.input_dilation;
    const array weights = channels_swapped(flip ? w : flipped(w, s), g.groups, s);
    return as_type(conv_input(x, weights, head_of(t, back), y, s), type, s);
  }
  x = with_zeros_between(x, g.input_dilation, s);
  if (is_product(g, w.shape())) {
    const array flat = matmul(reshape(x, {-1, x.shape().back()}, s), transpose(reshape(w, {w.shape()[0], -1}, s), {}, s), s);
    return as_type(reshape(flat, y, s), type, s);
  }
  return as_type(conv(x, flip ? flipped(w, s) : w, head_of(g, g.low), y, s), type, s);
}

array forward(const char* operation, const array& input, const array& weight, const Extents& stride, const Extents& padding,
              const Extents& dilation, int groups, std::size_t axes, const StreamOrDevice& s) {
  check(operation, input, weight, axes, groups);
  Geometry g;
  g.stride = for_axes(operation, "stride", stride, axes, 1);
  g.low = g.high = for_axes(operation, "padding", padding, axes, 0);
  g.dilation = for_axes(operation, "dilation", dilation, axes, 1);
  g.input_dilation = Ints(axes, 1);
  g.groups = groups;
  return convolved(operation, input, weight, g, false, s);
}

array transposed(const char* operation, array x, array w, const Extents& stride, const Extents& padding, const Extents& dilation,
                 const Extents& output_padding, int groups, std::size_t axes, const StreamOrDevice& s) {
  check(operation, x, w, axes, groups);
  Geometry g;
  g.stride = for_axes(operation, "stride", stride, axes, 1);
  g.low = for_axes(operation, "padding", padding, axes, 0);
  g.dilation = for_axes(operation, "dilation", dilation, axes, 1);
  g.groups = groups;
  const Ints longer = for_axes(operation, "output_padding", output_padding, axes, 0);
  const Dtype type = settle_types(operation, x, w, s);
  Shape out{x.shape()[0]};
  for (std::size_t i = 0; i < axes; ++i) {
    const std::int64_t reach = (w.shape()[i + 1] - 1) * g.dilation[i] + 1;
    const std::int64_t extent = (x.shape()[i + 1] - 1) * g.stride[i] + reach - 2 * g.low[i] + longer[i];
    if (extent < 1 || x.shape()[i + 1] < 1) {
      refuse(operation, "padding {} leaves nothing of an input of shape {}", g.low[i], to_string(x.shape()));
    }
    out.push_back(extent);
  }
  out.push_back(w.shape()[0]);
  return as_type(conv_input(x, channels_swapped(w, groups, s), head_of(g, g.low), out, s), type, s);
}

}  // namespace
}  // namespace detail

array conv1d(const array& input, const array& weight, int stride, int padding, int dilation, int groups, StreamOrDevice s) {
  return detail::forward("conv1d", input, weight, {stride}, {padding}, {dilation}, groups, 1, s);
}

array conv2d(const array& input, const array& weight, const Extents& stride, const Extents& padding, const Extents& dilation,
             int groups, StreamOrDevice s) {
  return detail::forward("conv2d", input, weight, stride, padding, dilation, groups, 2, s);
}

array conv3d(const array& input, const array& weight, const Extents& stride, const Extents& padding, const Extents& dilation,
             int groups, StreamOrDevice s) {
  return detail::forward("conv3d", input, weight, stride, padding, dilation, groups, 3, s);
}

array conv_transpose1d(const array& input, const array& weight, int stride, int padding, int dilation, int output_padding,
                       int groups, StreamOrDevice s) {
  return detail::transposed("conv_transpose1d", input, weight, {stride}, {padding}, {dilation}, {output_padding}, groups, 1, s);
}

array conv_transpose2d(const array& input, const array& weight, const Extents& stride, const Extents& padding,
                       const Extents& dilation, const Extents& output_padding, int groups, StreamOrDevice s) {
  return detail::transposed("conv_transpose2d", input, weight, stride, padding, dilation, output_padding, groups, 2, s);
}

array conv_transpose3d(const array& input, const array& weight, const Extents& stride, const Extents& padding,
                       const Extents& dilation, const Extents& output_padding, int groups, StreamOrDevice s) {
  return detail::transposed("conv_transpose3d", input, weight, stride, padding, dilation, output_padding, groups, 3, s);
}

array conv_general(const array& input, const array& weight, const Extents& stride, const Extents& padding,
                   const std::optional<Extents>& padding_high, const Extents& kernel_dilation, const Extents& input_dilation,
                   int groups, bool flip, StreamOrDevice s) {
  const std::size_t axes = detail::check("conv_general", input, weight, 0, groups);
  detail::Geometry g;
  g.stride = detail::for_axes("conv_general", "stride", stride, axes, 1);
  g.low = detail::for_axes("conv_general", "padding", padding, axes, 0);
  g.high = padding_high ? detail::for_axes("conv_general", "padding", *padding_high, axes, 0) : g.low;
  g.dilation = detail::for_axes("conv_general", "kernel_dilation", kernel_dilation, axes, 1);
  g.input_dilation = detail::for_axes("conv_general", "input_dilation", input_dilation, axes, 1);
  g.groups = groups;
  return detail::convolved("conv_general", input, weight, g, flip, s);
}

}  // namespace sdx::array
