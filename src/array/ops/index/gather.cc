// Blocks at given positions are read or written. ONNX Gather-13 reads whole rows.

#include "array/ops/index/gather.h"

#include <algorithm>

#include <sdx/array.hpp>

#include "array/array_op.h"
#include "array/ops/batch.h"
#include "array/ops/common.h"
#include "array/ops/index/update.h"
#include "kernels/cpu/movement/blocks.h"
#include "ops/tensor/axes.h"

namespace sdx::array {
namespace detail {
namespace {

using Ints = std::vector<std::int64_t>;

// params.ints of all kinds holds axes, then the block's extents (one for each axis of the array). Scatters have the mode in
// front; those into zeros have the result's shape at the end.
struct Layout {
  std::vector<int> axes;
  Shape block;
};

Layout layout_of(const Ints& ints, std::size_t begin, std::size_t end, std::size_t rank) {
  Layout l;
  l.axes.assign(ints.begin() + static_cast<std::ptrdiff_t>(begin), ints.begin() + static_cast<std::ptrdiff_t>(end - rank));
  l.block.assign(ints.begin() + static_cast<std::ptrdiff_t>(end - rank), ints.begin() + static_cast<std::ptrdiff_t>(end));
  return l;
}

std::vector<array> from(const std::vector<array>& inputs, std::size_t first) {
  return {inputs.begin() + static_cast<std::ptrdiff_t>(first), inputs.end()};
}

std::int64_t checked(ops::OpContext& c, std::int64_t at, std::int64_t extent, std::int64_t block) {
  const std::int64_t from = at < 0 ? at + extent : at;
  if (from < 0 || from > extent - block) {
    c.fail("position {} is out of range for an axis of {} elements{}", at, extent, block > 1 ? " and this slice size" : "");
  }
  return from;
}

// Returns where blocks lie whose positions are the inputs from `first` on. Attribute "ints" holds the positions' axes, then the
// block's extents.
cpu::Blocks blocks_of(ops::OpContext& c, const Shape& whole, std::size_t first) {
  const Ints ints = c.attrs().get_ints("ints");
  const std::size_t count = ints.size() - whole.size();
  const Ints block(ints.begin() + static_cast<std::ptrdiff_t>(count), ints.end());
  const Ints strides = ops::strides_of(whole);
  cpu::Blocks b;
  b.offsets.assign(static_cast<std::size_t>(count == 0 ? 1 : c.input(first).size()), 0);
  for (std::size_t i = 0; i < count; ++i) {
    const auto axis = static_cast<std::size_t>(ints[i]);
    const auto* at = c.data<std::int64_t>(first + i);
    for (std::size_t n = 0; n < b.offsets.size(); ++n) {
      b.offsets[n] += strides[axis] * checked(c, at[n], whole[axis], block[axis]);
    }
  }
  // The last axes that the block takes whole, and one axis before them, are contiguous.
  std::size_t outer = whole.size();
  while (outer > 0) {
    --outer;
    b.run *= block[outer];
    if (block[outer] != whole[outer]) break;
  }
  b.rows.assign(1, 0);
  for (std::size_t i = 0; i < outer; ++i) {
    Ints next;
    for (const std::int64_t row : b.rows) {
      for (std::int64_t k = 0; k < block[i]; ++k) next.push_back(row + k * strides[i]);
    }
    b.rows = std::move(next);
  }
  return b;
}

void run_gather(ops::OpContext& c) {
  Tensor& out = result_tensor(c);
  const cpu::Blocks b = blocks_of(c, c.input(0).shape(), 1);
  if (out.size() > 0) cpu::gather_blocks(bit_width(out.dtype()) / 8, b, c.input(0).data(), out.mutable_data());
}

void run_scatter(ops::OpContext& c) {
  Tensor& out = result_tensor(c);
  start_from_input(c, out);
  const Tensor& updates = c.input(1);
  const cpu::Blocks b = blocks_of(c, out.shape(), 2);
  const auto fn = static_cast<cpu::UpdateFn>(c.attrs().get_int("function"));
  if (updates.size() > 0) cpu::scatter_blocks(fn, out.dtype(), b, updates.data(), out.mutable_data());
}

void emit_gather(Emitter& e) {
  const Ints& ints = e.params().ints;
  const Shape& whole = e.shape(0);
  // The engine's Gather reads whole rows.
  const bool rows = e.num_inputs() == 2 && ints[0] == 0 && ints[1] == 1 &&
                    std::equal(whole.begin() + 1, whole.end(), ints.begin() + 2, ints.end());
  if (rows) return e.result(e.reshape(e.op("Gather", {e.in(0), e.in(1)}), e.out_shape()));
  e.results<run_gather>("Gather", e.inputs(), {{"ints", e.params().ints}});
}

std::vector<array> gather_vjp(const VjpCall& c) {
  const Layout l = layout_of(c.params.ints, 0, c.params.ints.size(), c.inputs[0].shape().size());
  std::vector<array> out;
  for (const std::size_t i : c.wanted) {
    out.push_back(i == 0 ? scatter_zeros(c.inputs[0].shape(), from(c.inputs, 1), c.of_outputs[0], l.axes)
                         : zeros_of(c.inputs[i].shape(), c.inputs[i].dtype()));
  }
  return out;
}

// Returns the positions of a batch, all with the batch axis in front and of one rank.
std::vector<array> batched_positions(const VmapCall& c, std::size_t first) {
  std::vector<array> out;
  for (std::size_t i = first; i < c.inputs.size(); ++i) out.push_back(batched(c, i));
  return out;
}

// Returns the number of each element of the batch, broadcast to the shape of positions.
array batch_positions(std::int64_t batch, const Shape& like) {
  Shape shape(like.size(), 1);
  shape[0] = batch;
  return broadcast_to(reshape(iota(batch), shape), like);
}

VmapResult gather_vmap(const VmapCall& c) {
  Layout l = layout_of(c.params.ints, 0, c.params.ints.size(), inner_rank(c, 0));
  bool any_positions = false;
  for (std::size_t i = 1; i < c.inputs.size(); ++i) any_positions = any_positions || is_batched(c, i);
  std::vector<array> positions = any_positions ? batched_positions(c, 1) : from(c.inputs, 1);
  if (!is_batched(c, 0)) return batch_result(gather(c.inputs[0], positions, l.axes, l.block));
  for (int& axis : l.axes) ++axis;
  const std::size_t rank = positions.empty() ? 0 : positions[0].shape().size();
  if (!any_positions) {
    l.block.insert(l.block.begin(), c.batch);
    return {{gather(batch_first(c, 0), positions, l.axes, l.block)}, {static_cast<int>(rank)}};
  }
  l.block.insert(l.block.begin(), 1);
  positions.insert(positions.begin(), batch_positions(c.batch, positions[0].shape()));
  l.axes.insert(l.axes.begin(), 0);
  return batch_result(squeeze(gather(batch_first(c, 0), positions, l.axes, l.block), static_cast<int>(rank)));
}

const Kind kGather{.name = "gather", .emit = emit_gather, .vjp = gather_vjp, .vmap = gather_vmap};

Update mode_of(const Params& p) { return static_cast<Update>(p.ints[0]); }

// Inputs: the array, or none for zeros; updates; positions. `ints` holds axes, then the block's extents.
void emit_scattering(Emitter& e, std::vector<ValueId> inputs, Update mode, Ints ints) {
  e.updated<run_scatter>("Scatter", std::move(inputs), {{"function", number_of(mode)}, {"ints", std::move(ints)}});
}

void emit_scatter(Emitter& e) {
  const Ints& ints = e.params().ints;
  emit_scattering(e, e.inputs(), mode_of(e.params()), Ints(ints.begin() + 1, ints.end()));
}

// Tells which elements of the updates stay where several go to one place. Each element has a number, which is stored in the same
// way: the number that is read back is the last one. Axes that all blocks take whole need one number.
std::optional<array> stored_updates(const Shape& whole, const std::vector<array>& positions, const Layout& l) {
  if (positions.empty() || positions[0].size() < 2) return std::nullopt;
  Shape place = whole, block = l.block;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const bool positioned = std::find(l.axes.begin(), l.axes.end(), static_cast<int>(i)) != l.axes.end();
    if (!positioned && block[i] == whole[i]) place[i] = block[i] = 1;
  }
  Shape shape = positions[0].shape();
  shape.insert(shape.end(), block.begin(), block.end());
  const array numbers = reshape(iota(element_count(shape)), shape);
  const array last = scatter(zeros_of(place, Dtype::int64), positions, numbers, l.axes, Update::set);
  return equal(gather(last, positions, l.axes, block), numbers);
}

std::vector<array> scatter_vjp(const VjpCall& c) {
  const Layout l = layout_of(c.params.ints, 1, c.params.ints.size(), c.inputs[0].shape().size());
  const std::vector<array> positions = from(c.inputs, 2);
  const Shape whole = c.inputs[0].shape();
  return chosen(c, update_gradients(
                       mode_of(c.params), c, [=](const array& a) { return gather(a, positions, l.axes, l.block); },
                       [=](const array& a, const array& v, Update mode) { return scatter(a, positions, v, l.axes, mode); },
                       [=] { return stored_updates(whole, positions, l); }));
}

VmapResult scatter_vmap(const VmapCall& c) {
  Layout l = layout_of(c.params.ints, 1, c.params.ints.size(), inner_rank(c, 0));
  std::vector<array> positions = batched_positions(c, 2);
  if (positions.empty()) return batch_result(combined(mode_of(c.params), batched(c, 0), batched(c, 1)));
  for (int& axis : l.axes) ++axis;
  l.axes.insert(l.axes.begin(), 0);
  const std::size_t rank = positions[0].shape().size();
  positions.insert(positions.begin(), batch_positions(c.batch, positions[0].shape()));
  const array updates = expand_dims(batched(c, 1), static_cast<int>(rank));
  return batch_result(scatter(batched(c, 0), positions, updates, l.axes, mode_of(c.params)));
}

const Kind kScatter{.name = "scatter", .emit = emit_scatter, .vjp = scatter_vjp, .vmap = scatter_vmap};

// Inputs: updates, positions. params.ints holds axes, the block, the result's shape.
void emit_scatter_zeros(Emitter& e) {
  std::vector<ValueId> inputs{kNoValue};
  for (std::size_t i = 0; i < e.num_inputs(); ++i) inputs.push_back(e.in(i));
  const Ints& ints = e.params().ints;
  const auto rank = static_cast<std::ptrdiff_t>(e.out_shape().size());
  emit_scattering(e, std::move(inputs), Update::add, Ints(ints.begin(), ints.end() - rank));
}

// Returns the result's shape, which stands behind the axes and the block's extents.
Shape shape_behind(const Params& p, std::size_t positions) {
  const std::size_t rank = (p.ints.size() - positions) / 2;
  return Shape(p.ints.end() - static_cast<std::ptrdiff_t>(rank), p.ints.end());
}

std::vector<array> scatter_zeros_vjp(const VjpCall& c) {
  const std::size_t rank = c.of_outputs[0].shape().size();
  const Layout l = layout_of(c.params.ints, 0, c.params.ints.size() - rank, rank);
  std::vector<array> out;
  for (const std::size_t i : c.wanted) {
    out.push_back(i == 0 ? gather(c.of_outputs[0], from(c.inputs, 1), l.axes, l.block)
                         : zeros_of(c.inputs[i].shape(), c.inputs[i].dtype()));
  }
  return out;
}

VmapResult scatter_zeros_vmap(const VmapCall& c) {
  Shape shape = shape_behind(c.params, c.inputs.size() - 1);
  Layout l = layout_of(c.params.ints, 0, c.params.ints.size() - shape.size(), shape.size());
  std::vector<array> positions = batched_positions(c, 1);
  if (positions.empty()) return batch_result(batched(c, 0));
  for (int& axis : l.axes) ++axis;
  l.axes.insert(l.axes.begin(), 0);
  const std::size_t rank = positions[0].shape().size();
  positions.insert(positions.begin(), batch_positions(c.batch, positions[0].shape()));
  shape.insert(shape.begin(), c.batch);
  return batch_result(scatter_zeros(shape, positions, expand_dims(batched(c, 0), static_cast<int>(rank)), l.axes));
}

const Kind kScatterZeros{.name = "scatter", .emit = emit_scatter_zeros, .vjp = scatter_zeros_vjp, .vmap = scatter_zeros_vmap};

// Checks axes and positions, and broadcasts the positions.
struct Positions {
  std::vector<array> arrays;
  Shape shape;
  Ints axes;
};

Positions settle(const char* operation, std::size_t rank, const std::vector<array>& indices, const std::vector<int>& axes,
                 const StreamOrDevice& s) {
  if (indices.size() != axes.size()) refuse(operation, "{} index arrays for {} axes", indices.size(), axes.size());
  Positions p;
  for (const int axis : axes) {
    p.axes.push_back(axis_of(operation, axis, rank));
    if (std::count(p.axes.begin(), p.axes.end(), p.axes.back()) > 1) refuse(operation, "axis {} is given twice", axis);
  }
  for (const array& a : indices) p.shape = broadcast(operation, p.shape, a.shape());
  for (const array& a : indices) p.arrays.push_back(broadcast_to(positions_of(operation, a, s), p.shape, s));
  return p;
}

// Tells whether blocks of this extent fit on an axis; without positions there is nothing to fit.
bool has_room(const Positions& p, std::int64_t block, std::int64_t whole) {
  return block <= whole || std::find(p.shape.begin(), p.shape.end(), 0) != p.shape.end();
}

// Returns the block of which updates of this shape consist. Throws if they do not fit.
Shape block_of(const char* operation, const Shape& whole, const Positions& p, const Shape& updates) {
  const bool fits =
      updates.size() == p.shape.size() + whole.size() && std::equal(p.shape.begin(), p.shape.end(), updates.begin());
  if (!fits) {
    refuse(operation, "updates of shape {} for positions of shape {} in an array of shape {}", to_string(updates),
           to_string(p.shape), to_string(whole));
  }
  Shape block(updates.begin() + static_cast<std::ptrdiff_t>(p.shape.size()), updates.end());
  for (std::size_t i = 0; i < block.size(); ++i) {
    if (!has_room(p, block[i], whole[i]))
      refuse(operation, "blocks of shape {} in an array of shape {}", to_string(block), to_string(whole));
  }
  return block;
}

}  // namespace

array positions_of(const char* operation, const array& indices, const StreamOrDevice& s) {
  if (is_inexact(indices.dtype()) || indices.dtype() == Dtype::boolean) {
    refuse(operation, "positions of type {}; expected integers", name(indices.dtype()));
  }
  return as_type(indices, Dtype::int64, s);
}

array scatter_zeros(const Shape& shape, const std::vector<array>& indices, const array& updates, const std::vector<int>& axes,
                    const StreamOrDevice& s) {
  Positions p = settle("scatter", shape.size(), indices, axes, s);
  const Shape block = block_of("scatter", shape, p, updates.shape());
  Params params;
  params.ints = std::move(p.axes);
  params.ints.insert(params.ints.end(), block.begin(), block.end());
  params.ints.insert(params.ints.end(), shape.begin(), shape.end());
  std::vector<array> inputs{updates};
  inputs.insert(inputs.end(), p.arrays.begin(), p.arrays.end());
  return make(kScatterZeros, updates.dtype(), shape, std::move(inputs), std::move(params), s);
}

}  // namespace detail

array gather(const array& a, const std::vector<array>& indices, const std::vector<int>& axes, const Shape& slice_sizes,
             StreamOrDevice s) {
  detail::Positions p = detail::settle("gather", a.shape().size(), indices, axes, s);
  if (slice_sizes.size() != a.shape().size()) {
    detail::refuse("gather", "{} slice sizes for an array with {} dimensions", slice_sizes.size(), a.ndim());
  }
  Shape shape = p.shape;
  for (std::size_t i = 0; i < slice_sizes.size(); ++i) {
    if (slice_sizes[i] < 0 || !detail::has_room(p, slice_sizes[i], a.shape()[i])) {
      detail::refuse("gather", "slice sizes {} of an array of shape {}", to_string(slice_sizes), to_string(a.shape()));
    }
    shape.push_back(slice_sizes[i]);
  }
  detail::Params params;
  params.ints = std::move(p.axes);
  params.ints.insert(params.ints.end(), slice_sizes.begin(), slice_sizes.end());
  std::vector<array> inputs{a};
  inputs.insert(inputs.end(), p.arrays.begin(), p.arrays.end());
  return detail::make(detail::kGather, a.dtype(), std::move(shape), std::move(inputs), std::move(params), s);
}

array scatter(const array& a, const std::vector<array>& indices, const array& updates, const std::vector<int>& axes, Update mode,
              StreamOrDevice s) {
  detail::Positions p = detail::settle("scatter", a.shape().size(), indices, axes, s);
  array values = detail::as_type(updates, a.dtype(), s);
  // Several values may meet at one place, so their effect must not depend on their order.
  if (mode == Update::subtract || mode == Update::divide) {
    values = detail::reversed(mode, values, s);
    mode = mode == Update::subtract ? Update::add : Update::multiply;
  }
  const Shape block = detail::block_of("scatter", a.shape(), p, values.shape());
  detail::Params params;
  params.ints.push_back(static_cast<std::int64_t>(mode));
  params.ints.insert(params.ints.end(), p.axes.begin(), p.axes.end());
  params.ints.insert(params.ints.end(), block.begin(), block.end());
  std::vector<array> inputs{a, std::move(values)};
  inputs.insert(inputs.end(), p.arrays.begin(), p.arrays.end());
  return detail::make(detail::kScatter, a.dtype(), a.shape(), std::move(inputs), std::move(params), s);
}

}  // namespace sdx::array
