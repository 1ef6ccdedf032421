// Changing shapes without moving elements. ONNX Reshape-21.

#include <algorithm>

#include <sdx/array.hpp>

#include "array/emitter.h"
#include "array/ops/batch.h"
#include "array/ops/common.h"

namespace sdx::array {
namespace detail {
namespace {

// params.ints holds the shape.
void emit_reshape(Emitter& e) { e.result(e.reshape(e.in(0), e.out_shape())); }

std::vector<array> reshape_vjp(const VjpCall& c) { return {reshape(c.of_outputs[0], c.inputs[0].shape())}; }

VmapResult reshape_vmap(const VmapCall& c) {
  Shape shape = c.params.ints;
  shape.insert(shape.begin(), c.batch);
  return batch_result(reshape(batch_first(c, 0), std::move(shape)));
}

Tensor reshape_view(const Tensor& input, const Shape& shape) { return input.reshaped(shape); }

const Kind kReshape{.name = "reshape", .emit = emit_reshape, .vjp = reshape_vjp, .vmap = reshape_vmap, .view = reshape_view};

// Fills in an extent of -1 so that the shape holds `count` elements; returns whether it can.
bool settle(Shape& shape, std::int64_t count) {
  std::int64_t known = 1;
  std::int64_t* open = nullptr;
  for (std::int64_t& extent : shape) {
    if (extent >= 0) {
      if (extent != 0 && known > (std::int64_t{1} << 62) / extent) return false;
      known *= extent;
    } else if (extent == -1 && open == nullptr) {
      open = &extent;
    } else {
      return false;
    }
  }
  if (open != nullptr) *open = known == 0 ? 0 : count / known;
  return known * (open != nullptr ? *open : 1) == count;
}

}  // namespace
}  // namespace detail

array reshape(const array& a, Shape shape, StreamOrDevice s) {
  if (shape == a.shape()) return a;
  const Shape asked = shape;
  if (!detail::settle(shape, a.size())) {
    detail::refuse("reshape", "{} elements of shape {} do not fit into {}", a.size(), to_string(a.shape()), to_string(asked));
  }
  if (shape == a.shape()) return a;
  detail::Params params;
  params.ints = shape;
  return detail::make(detail::kReshape, a.dtype(), std::move(shape), {a}, std::move(params), s);
}

array flatten(const array& a, int start_axis, int end_axis, StreamOrDevice s) {
  if (a.ndim() == 0) return reshape(a, {1}, s);
  const int first = detail::axis_of("flatten", start_axis, a.shape().size());
  const int last = detail::axis_of("flatten", end_axis, a.shape().size());
  if (first > last) detail::refuse("flatten", "start_axis {} comes after end_axis {}", start_axis, end_axis);
  Shape shape(a.shape().begin(), a.shape().begin() + first);
  std::int64_t count = 1;
  for (int i = first; i <= last; ++i) count *= a.shape()[static_cast<std::size_t>(i)];
  shape.push_back(count);
  shape.insert(shape.end(), a.shape().begin() + last + 1, a.shape().end());
  return reshape(a, std::move(shape), s);
}

array unflatten(const array& a, int axis, Shape shape, StreamOrDevice s) {
  if (shape.empty()) detail::refuse("unflatten", "the shape is empty; give at least one extent");
  const int at = detail::axis_of("unflatten", axis, a.shape().size());
  const std::int64_t extent = a.shape()[static_cast<std::size_t>(at)];
  const Shape asked = shape;
  if (!detail::settle(shape, extent)) {
    detail::refuse("unflatten", "axis {} of {} elements does not become {}", axis, extent, to_string(asked));
  }
  Shape all(a.shape().begin(), a.shape().begin() + at);
  all.insert(all.end(), shape.begin(), shape.end());
  all.insert(all.end(), a.shape().begin() + at + 1, a.shape().end());
  return reshape(a, std::move(all), s);
}

array squeeze(const array& a, const std::optional<std::vector<int>>& axis, StreamOrDevice s) {
  Shape shape;
  if (!axis) {
    for (const std::int64_t extent : a.shape()) {
      if (extent != 1) shape.push_back(extent);
    }
    return reshape(a, std::move(shape), s);
  }
  const auto axes = detail::axes_of("squeeze", axis, a.shape().size());
  for (std::size_t i = 0, next = 0; i < a.shape().size(); ++i) {
    if (next == axes.size() || axes[next] != static_cast<std::int64_t>(i)) {
      shape.push_back(a.shape()[i]);
      continue;
    }
    ++next;
    if (a.shape()[i] != 1) detail::refuse("squeeze", "axis {} of shape {} does not have extent 1", i, to_string(a.shape()));
  }
  return reshape(a, std::move(shape), s);
}

array squeeze(const array& a, int axis, StreamOrDevice s) { return squeeze(a, std::vector<int>{axis}, s); }

array expand_dims(const array& a, const std::vector<int>& axis, StreamOrDevice s) {
  const std::size_t rank = a.shape().size() + axis.size();
  const auto axes = detail::axes_of("expand_dims", axis, rank);
  Shape shape;
  for (std::size_t i = 0, next = 0, from = 0; i < rank; ++i) {
    const bool added = next < axes.size() && axes[next] == static_cast<std::int64_t>(i);
    if (added) ++next;
    shape.push_back(added ? 1 : a.shape()[from++]);
  }
  return reshape(a, std::move(shape), s);
}

array expand_dims(const array& a, int axis, StreamOrDevice s) {
  const int at = detail::axis_of("expand_dims", axis, a.shape().size() + 1);
  Shape shape = a.shape();
  shape.insert(shape.begin() + at, 1);
  return reshape(a, std::move(shape), s);
}

array atleast_1d(const array& a, StreamOrDevice s) { return a.ndim() == 0 ? reshape(a, {1}, s) : a; }

array atleast_2d(const array& a, StreamOrDevice s) {
  if (a.ndim() >= 2) return a;
  return reshape(a, {1, a.size()}, s);
}

array atleast_3d(const array& a, StreamOrDevice s) {
  if (a.ndim() >= 3) return a;
  if (a.ndim() == 2) return reshape(a, {a.shape()[0], a.shape()[1], 1}, s);
  return reshape(a, {1, a.size(), 1}, s);
}

}  // namespace sdx::array
