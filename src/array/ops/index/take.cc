// Positions along one axis. ONNX Gather-13, GatherElements-13.

#include <sdx/array.hpp>

#include "array/array_op.h"
#include "array/ops/batch.h"
#include "array/ops/common.h"
#include "array/ops/index/gather.h"
#include "array/ops/index/slice.h"
#include "array/ops/index/update.h"
#include "kernels/cpu/movement/blocks.h"
#include "ops/tensor/axes.h"

namespace sdx::array {
namespace detail {
namespace {

// params.ints holds the axis.
void emit_take(Emitter& e) { e.result(e.op("Gather", {e.in(0), e.in(1)}, {{"axis", e.params().ints[0]}})); }

// Returns the permutation that moves `count` axes from place `from` to place `to`.
std::vector<int> moved(std::size_t rank, std::size_t from, std::size_t count, std::size_t to) {
  std::vector<int> perm, block;
  for (std::size_t i = 0; i < rank; ++i) {
    (i >= from && i < from + count ? block : perm).push_back(static_cast<int>(i));
  }
  perm.insert(perm.begin() + static_cast<std::ptrdiff_t>(to), block.begin(), block.end());
  return perm;
}

std::vector<array> take_vjp(const VjpCall& c) {
  const array &a = c.inputs[0], &positions = c.inputs[1];
  const auto axis = static_cast<std::size_t>(c.params.ints[0]);
  const std::size_t count = positions.shape().size();
  std::vector<array> out;
  for (const std::size_t i : c.wanted) {
    if (i == 1) {
      out.push_back(zeros_of(positions.shape(), positions.dtype()));
      continue;
    }
    const array& g = c.of_outputs[0];
    const array first = transpose(g, moved(g.shape().size(), axis, count, 0));
    out.push_back(
        scatter_zeros(a.shape(), {positions}, expand_dims(first, static_cast<int>(count + axis)), {static_cast<int>(axis)}));
  }
  return out;
}

VmapResult take_vmap(const VmapCall& c) {
  const auto axis = static_cast<int>(c.params.ints[0]);
  const array a = batch_first(c, 0), positions = batch_first(c, 1);
  if (!is_batched(c, 1)) return batch_result(take(a, positions, axis + 1));
  if (!is_batched(c, 0)) return {{take(a, positions, axis)}, {axis}};
  Shape numbers(positions.shape().size(), 1);
  numbers[0] = c.batch;
  Shape block = a.shape();
  block[0] = block[static_cast<std::size_t>(axis) + 1] = 1;
  const auto rank = static_cast<int>(positions.shape().size());
  const array rows = gather(a, {reshape(iota(c.batch), numbers), positions}, {0, axis + 1}, block);
  const array flat = squeeze(rows, std::vector<int>{rank, rank + axis + 1});
  const auto count = static_cast<std::size_t>(rank - 1);
  return batch_result(transpose(flat, moved(flat.shape().size(), 1, count, static_cast<std::size_t>(axis) + 1)));
}

const Kind kTake{.name = "take", .emit = emit_take, .vjp = take_vjp, .vmap = take_vmap};

// Inputs: the array, and positions that have its shape except along the axis. params.ints holds the axis.
void emit_along(Emitter& e) { e.result(e.op("GatherElements", {e.in(0), e.in(1)}, {{"axis", e.params().ints[0]}})); }

std::vector<array> along_vjp(const VjpCall& c) {
  const auto axis = static_cast<int>(c.params.ints[0]);
  std::vector<array> out;
  for (const std::size_t i : c.wanted) {
    out.push_back(i == 0 ? scatter_zeros_along(c.inputs[0].shape(), c.inputs[1], c.of_outputs[0], axis)
                         : zeros_of(c.inputs[1].shape(), c.inputs[1].dtype()));
  }
  return out;
}

VmapResult along_vmap(const VmapCall& c) {
  return batch_result(take_along_axis(batched(c, 0), batched(c, 1), static_cast<int>(c.params.ints[0]) + 1));
}

const Kind kTakeAlong{.name = "take_along_axis", .emit = emit_along, .vjp = along_vjp, .vmap = along_vmap};

void run_put(ops::OpContext& c) {
  Tensor& out = result_tensor(c);
  start_from_input(c, out);
  const Tensor &updates = c.input(1), &places = c.input(2);
  if (updates.size() == 0) return;
  const auto axis = static_cast<std::size_t>(c.attrs().get_int("axis"));
  const cpu::PickedLines lines{ops::product(out.shape(), 0, axis), places.dim(axis), out.dim(axis),
                               ops::product(out.shape(), axis + 1, out.rank())};
  for (const std::int64_t at : places.values<std::int64_t>()) {
    if (at >= lines.extent || at < -lines.extent)
      c.fail("position {} is out of range for an axis of {} elements", at, lines.extent);
  }
  const auto fn = static_cast<cpu::UpdateFn>(c.attrs().get_int("function"));
  cpu::scatter_lines(fn, out.dtype(), lines, c.data<std::int64_t>(2), updates.data(), out.mutable_data());
}

// Inputs: the array, or none for zeros; values; positions.
void emit_putting(Emitter& e, std::vector<ValueId> inputs, Update mode) {
  e.updated<run_put>("ScatterAxis", std::move(inputs), {{"axis", e.params().ints[0]}, {"function", number_of(mode)}});
}

// params.ints holds the axis and the mode.
void emit_put(Emitter& e) { emit_putting(e, e.inputs(), static_cast<Update>(e.params().ints[1])); }

array put(const array& a, const array& values, const array& positions, int axis, Update mode, const StreamOrDevice& s = {});

// Tells which values stay where several go to one place: the last ones. Numbers are stored in place of the values and read back.
std::optional<array> stored_values(const Shape& whole, const array& positions, int axis) {
  if (positions.shape(axis) < 2) return std::nullopt;
  const array numbers = reshape(iota(positions.size()), positions.shape());
  const array last = put(zeros_of(whole, Dtype::int64), numbers, positions, axis, Update::set);
  return equal(take_along_axis(last, positions, axis), numbers);
}

std::vector<array> put_vjp(const VjpCall& c) {
  const auto axis = static_cast<int>(c.params.ints[0]);
  const array positions = c.inputs[2];
  const Shape whole = c.inputs[0].shape();
  return chosen(c,
                update_gradients(
                    static_cast<Update>(c.params.ints[1]), c, [=](const array& a) { return take_along_axis(a, positions, axis); },
                    [=](const array& a, const array& v, Update mode) { return put(a, v, positions, axis, mode); },
                    [=] { return stored_values(whole, positions, axis); }));
}

VmapResult put_vmap(const VmapCall& c) {
  return batch_result(put(batched(c, 0), batched(c, 1), batched(c, 2), static_cast<int>(c.params.ints[0]) + 1,
                          static_cast<Update>(c.params.ints[1])));
}

const Kind kPut{.name = "put_along_axis", .emit = emit_put, .vjp = put_vjp, .vmap = put_vmap};

array put(const array& a, const array& values, const array& positions, int axis, Update mode, const StreamOrDevice& s) {
  Params p;
  p.ints = {axis, static_cast<std::int64_t>(mode)};
  return make(kPut, a.dtype(), a.shape(), {a, values, positions}, std::move(p), s);
}

// Inputs: values, positions. params.ints holds the axis, then the result's shape.
void emit_put_zeros(Emitter& e) { emit_putting(e, {kNoValue, e.in(0), e.in(1)}, Update::add); }

std::vector<array> put_zeros_vjp(const VjpCall& c) {
  std::vector<array> out;
  for (const std::size_t i : c.wanted) {
    out.push_back(i == 0 ? take_along_axis(c.of_outputs[0], c.inputs[1], static_cast<int>(c.params.ints[0]))
                         : zeros_of(c.inputs[1].shape(), c.inputs[1].dtype()));
  }
  return out;
}

VmapResult put_zeros_vmap(const VmapCall& c) {
  Shape shape(c.params.ints.begin() + 1, c.params.ints.end());
  shape.insert(shape.begin(), c.batch);
  return batch_result(scatter_zeros_along(shape, batched(c, 1), batched(c, 0), static_cast<int>(c.params.ints[0]) + 1));
}

const Kind kPutZeros{.name = "put_along_axis", .emit = emit_put_zeros, .vjp = put_zeros_vjp, .vmap = put_zeros_vmap};

// The shapes of array and positions, broadcast to each other except along the axis.
struct Along {
  Shape of_array, of_positions;
};

Along broadcast_along(const char* operation, const Shape& a, const Shape& positions, std::size_t axis) {
  if (a.size() != positions.size()) {
    refuse(operation, "positions of shape {} for an array of shape {}; expected as many axes", to_string(positions),
           to_string(a));
  }
  Shape x = a, y = positions;
  x[axis] = y[axis] = 1;
  Along out{broadcast(operation, x, y), {}};
  out.of_positions = out.of_array;
  out.of_array[axis] = a[axis];
  out.of_positions[axis] = positions[axis];
  return out;
}

array put_along(const char* operation, const array& a, const array& indices, const array& values, int axis, Update mode,
                const StreamOrDevice& s) {
  const auto at = static_cast<std::size_t>(axis_of(operation, axis, a.shape().size()));
  const Along shapes = broadcast_along(operation, a.shape(), indices.shape(), at);
  if (shapes.of_array != a.shape()) {
    refuse(operation, "positions of shape {} for an array of shape {}", to_string(indices.shape()), to_string(a.shape()));
  }
  const array positions = broadcast_to(positions_of(operation, indices, s), shapes.of_positions, s);
  return put(a, broadcast_to(as_type(values, a.dtype(), s), shapes.of_positions, s), positions, static_cast<int>(at), mode, s);
}

}  // namespace

array scatter_zeros_along(const Shape& shape, const array& indices, const array& updates, int axis, const StreamOrDevice& s) {
  Params p;
  p.ints.push_back(axis);
  p.ints.insert(p.ints.end(), shape.begin(), shape.end());
  return make(kPutZeros, updates.dtype(), shape, {updates, indices}, std::move(p), s);
}

}  // namespace detail

array take(const array& a, const array& indices, std::optional<int> axis, StreamOrDevice s) {
  if (!axis) return take(reshape(a, {-1}, s), indices, 0, s);
  const auto at = static_cast<std::size_t>(detail::axis_of("take", *axis, a.shape().size()));
  array positions = detail::positions_of("take", indices, s);
  if (a.shape()[at] == 0 && indices.size() != 0) {
    detail::refuse("take", "axis {} of shape {} has no elements", at, to_string(a.shape()));
  }
  Shape shape(a.shape().begin(), a.shape().begin() + static_cast<std::ptrdiff_t>(at));
  shape.insert(shape.end(), indices.shape().begin(), indices.shape().end());
  shape.insert(shape.end(), a.shape().begin() + static_cast<std::ptrdiff_t>(at) + 1, a.shape().end());
  detail::Params p;
  p.ints.push_back(static_cast<std::int64_t>(at));
  return detail::make(detail::kTake, a.dtype(), std::move(shape), {a, std::move(positions)}, std::move(p), s);
}

array take(const array& a, std::int64_t index, std::optional<int> axis, StreamOrDevice s) {
  if (!axis) return take(reshape(a, {-1}, s), index, 0, s);
  const auto at = static_cast<std::size_t>(detail::axis_of("take", *axis, a.shape().size()));
  const std::int64_t extent = a.shape()[at];
  if (index < -extent || index >= extent) {
    detail::refuse("take", "position {} in axis {} of shape {}", index, at, to_string(a.shape()));
  }
  detail::Steps steps{Shape(a.shape().size(), 0), Shape(a.shape().size(), 1)};
  Shape counts = a.shape();
  steps.start[at] = index < 0 ? index + extent : index;
  counts[at] = 1;
  return squeeze(detail::strided_slice(a, steps, counts, s), static_cast<int>(at), s);
}

array take_along_axis(const array& a, const array& indices, std::optional<int> axis, StreamOrDevice s) {
  if (!axis) return take_along_axis(reshape(a, {-1}, s), reshape(indices, {-1}, s), 0, s);
  const auto at = static_cast<std::size_t>(detail::axis_of("take_along_axis", *axis, a.shape().size()));
  const detail::Along shapes = detail::broadcast_along("take_along_axis", a.shape(), indices.shape(), at);
  array positions = broadcast_to(detail::positions_of("take_along_axis", indices, s), shapes.of_positions, s);
  detail::Params p;
  p.ints.push_back(static_cast<std::int64_t>(at));
  return detail::make(detail::kTakeAlong, a.dtype(), shapes.of_positions,
                      {broadcast_to(a, shapes.of_array, s), std::move(positions)}, std::move(p), s);
}

array put_along_axis(const array& a, const array& indices, const array& values, std::optional<int> axis, StreamOrDevice s) {
  if (axis) return detail::put_along("put_along_axis", a, indices, values, *axis, Update::set, s);
  const array positions = reshape(indices, {-1}, s);
  const array flat = values.ndim() == 0 ? values : reshape(broadcast_to(values, indices.shape(), s), {-1}, s);
  return reshape(detail::put_along("put_along_axis", reshape(a, {-1}, s), positions, flat, 0, Update::set, s), a.shape(), s);
}

array scatter_add_axis(const array& a, const array& indices, const array& values, int axis, StreamOrDevice s) {
  return detail::put_along("scatter_add_axis", a, indices, values, axis, Update::add, s);
}

}  // namespace sdx::array
