// Regular parts that are replaced or changed, and parts whose beginning is an array.

#include <algorithm>

#include <sdx/array.hpp>

#include "array/array_op.h"
#include "array/ops/batch.h"
#include "array/ops/common.h"
#include "array/ops/index/slice.h"
#include "array/ops/index/update.h"
#include "kernels/cpu/movement/blocks.h"
#include "kernels/cpu/movement/transpose.h"

namespace sdx::array {
namespace detail {
namespace {

using Ints = std::vector<std::int64_t>;

// params.ints holds the mode, starts, steps.
Update mode_of(const Params& p) { return static_cast<Update>(p.ints[0]); }

Steps steps_of(const Params& p) {
  const auto rank = static_cast<std::ptrdiff_t>(p.ints.size() / 2);
  return {Ints(p.ints.begin() + 1, p.ints.begin() + 1 + rank), Ints(p.ints.begin() + 1 + rank, p.ints.end())};
}

void run_update(ops::OpContext& c) {
  Tensor& out = result_tensor(c);
  start_from_input(c, out);
  const Ints ints = c.attrs().get_ints("ints");
  const Tensor& part = c.input(1);
  if (part.size() == 0) return;
  const PartLayout layout = part_layout(out.shape(), part.shape(), ints.data() + 1, ints.data() + 1 + out.rank());
  if (static_cast<Update>(ints[0]) == Update::set) return put_part(part, layout, out);
  cpu::add_strided_to(out.dtype(), part.data(), at_element(out, layout.offset), part.shape(), layout.strides);
}

void emit_update(Emitter& e) { e.updated<run_update>("SliceUpdate", e.inputs(), {{"ints", e.params().ints}}); }

std::vector<array> update_vjp(const VjpCall& c) {
  const Steps steps = steps_of(c.params);
  const Shape& part = c.inputs[1].shape();
  const UpdateGradients g = update_gradients(
      mode_of(c.params), c, [&](const array& a) { return strided_slice(a, steps, part); },
      [&](const array& a, const array& values, Update mode) { return strided_update(a, values, steps, mode); },
      [] { return std::optional<array>(); });
  return chosen(c, g);
}

VmapResult update_vmap(const VmapCall& c) {
  Steps steps = steps_of(c.params);
  steps.start.insert(steps.start.begin(), 0);
  steps.step.insert(steps.step.begin(), 1);
  return batch_result(strided_update(batched(c, 0), batched(c, 1), steps, mode_of(c.params)));
}

const Kind kUpdate{.name = "slice_update", .emit = emit_update, .vjp = update_vjp, .vmap = update_vmap};

// params.ints of moving parts holds the axes of the starts, then the part's shape.
std::vector<std::int64_t> axes_in(const Params& p, std::size_t rank) {
  return Ints(p.ints.begin(), p.ints.end() - static_cast<std::ptrdiff_t>(rank));
}

// Returns how a part with step 1 lies that begins at `given` on the axes of attribute "ints"; moves it so that it lies inside.
PartLayout moving_layout(ops::OpContext& c, const Shape& whole, const Shape& part, const Tensor& given) {
  const Ints axes = c.attrs().get_ints("ints");
  const auto* at = static_cast<const std::int64_t*>(given.data());
  Ints starts(whole.size(), 0);
  const Ints steps(whole.size(), 1);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(axes[i]);
    const std::int64_t start = at[i] < 0 ? at[i] + whole[axis] : at[i];
    starts[axis] = std::clamp<std::int64_t>(start, 0, whole[axis] - part[axis]);
  }
  return part_layout(whole, part, starts.data(), steps.data());
}

void run_moving(ops::OpContext& c) {
  Tensor& out = result_tensor(c);
  take_part(c.input(0), moving_layout(c, c.input(0).shape(), out.shape(), c.input(1)), out);
}

void run_moving_update(ops::OpContext& c) {
  Tensor& out = result_tensor(c);
  start_from_input(c, out);
  put_part(c.input(1), moving_layout(c, out.shape(), c.input(1).shape(), c.input(2)), out);
}

void emit_moving(Emitter& e) {
  e.results<run_moving>("MovingSlice", e.inputs(), {{"ints", axes_in(e.params(), e.shape(0).size())}});
}

void emit_moving_update(Emitter& e) {
  e.updated<run_moving_update>("MovingUpdate", e.inputs(), {{"ints", axes_in(e.params(), e.shape(0).size())}});
}

std::vector<int> narrow(const Ints& axes) { return std::vector<int>(axes.begin(), axes.end()); }

std::vector<array> moving_vjp(const VjpCall& c) {
  const array& a = c.inputs[0];
  const std::vector<int> axes = narrow(axes_in(c.params, a.shape().size()));
  std::vector<array> out;
  for (const std::size_t i : c.wanted) {
    if (i == 0) out.push_back(slice_update(zeros_of(a.shape(), a.dtype()), c.of_outputs[0], c.inputs[1], axes));
    if (i == 1) out.push_back(zeros_of(c.inputs[1].shape(), c.inputs[1].dtype()));
  }
  return out;
}

std::vector<array> moving_update_vjp(const VjpCall& c) {
  const array &g = c.of_outputs[0], &part = c.inputs[1], &starts = c.inputs[2];
  const std::vector<int> axes = narrow(axes_in(c.params, c.inputs[0].shape().size()));
  std::vector<array> out;
  for (const std::size_t i : c.wanted) {
    if (i == 0) out.push_back(slice_update(g, zeros_of(part.shape(), g.dtype()), starts, axes));
    if (i == 1) out.push_back(slice(g, starts, axes, part.shape()));
    if (i == 2) out.push_back(zeros_of(starts.shape(), starts.dtype()));
  }
  return out;
}

const Kind kMovingSlice{.name = "slice", .emit = emit_moving, .vjp = moving_vjp};
const Kind kMovingUpdate{.name = "slice_update", .emit = emit_moving_update, .vjp = moving_update_vjp};

// Checks the starts and axes of moving parts; returns the axes, then `part`.
Params moving_params(const char* operation, const array& a, const array& starts, const std::vector<int>& axes,
                     const Shape& part) {
  const std::size_t rank = a.shape().size();
  if (is_inexact(starts.dtype()) || starts.dtype() == Dtype::boolean) {
    refuse(operation, "starts of type {}; expected integers", name(starts.dtype()));
  }
  if (starts.size() != static_cast<std::int64_t>(axes.size()) || starts.ndim() > 1) {
    refuse(operation, "starts of shape {} for {} axes", to_string(starts.shape()), axes.size());
  }
  if (part.size() != rank) refuse(operation, "a part of shape {} of an array of shape {}", to_string(part), to_string(a.shape()));
  Params p;
  for (const int axis : axes) {
    p.ints.push_back(axis_of(operation, axis, rank));
    if (std::count(p.ints.begin(), p.ints.end(), p.ints.back()) > 1) refuse(operation, "axis {} is given twice", axis);
  }
  for (std::size_t i = 0; i < rank; ++i) {
    if (part[i] < 0 || part[i] > a.shape()[i]) {
      refuse(operation, "a part of shape {} of an array of shape {}", to_string(part), to_string(a.shape()));
    }
  }
  p.ints.insert(p.ints.end(), part.begin(), part.end());
  return p;
}

}  // namespace

array strided_update(const array& a, const array& part, const Steps& steps, Update mode, const StreamOrDevice& s) {
  if (mode != Update::set && mode != Update::add) {
    const array now = strided_slice(a, steps, part.shape(), s);
    return strided_update(a, combined(mode, now, part, s), steps, Update::set, s);
  }
  Params p;
  p.ints.push_back(static_cast<std::int64_t>(mode));
  p.ints.insert(p.ints.end(), steps.start.begin(), steps.start.end());
  p.ints.insert(p.ints.end(), steps.step.begin(), steps.step.end());
  return make(kUpdate, a.dtype(), a.shape(), {a, part}, std::move(p), s);
}

}  // namespace detail

array slice(const array& a, const array& start_indices, const std::vector<int>& axes, const Shape& slice_size, StreamOrDevice s) {
  detail::Params p = detail::moving_params("slice", a, start_indices, axes, slice_size);
  return detail::make(detail::kMovingSlice, a.dtype(), slice_size, {a, detail::as_type(start_indices, Dtype::int64, s)},
                      std::move(p), s);
}

array slice_update(const array& a, const array& update, const array& start_indices, const std::vector<int>& axes,
                   StreamOrDevice s) {
  detail::Params p = detail::moving_params("slice_update", a, start_indices, axes, update.shape());
  return detail::make(detail::kMovingUpdate, a.dtype(), a.shape(),
                      {a, detail::as_type(update, a.dtype(), s), detail::as_type(start_indices, Dtype::int64, s)}, std::move(p),
                      s);
}

}  // namespace sdx::array
