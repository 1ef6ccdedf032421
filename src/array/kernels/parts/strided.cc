#include "array/kernels/parts/strided.h"

#include <algorithm>

#include "array/array_op.h"
#include "array/kernels/parts/update.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/movement.h"

namespace sdx::array::detail {
namespace {

using Ints = std::vector<std::int64_t>;
using ops::CopyAxis;

// A part of an array: where it begins, and how its axes run through the array and through the part itself.
struct Part {
  std::int64_t offset = 0;
  std::vector<CopyAxis> axes;  // from: within the part; to: within the array
};

Part part_of(const Shape& whole, const Shape& part, const std::int64_t* starts, const std::int64_t* steps) {
  Part p;
  const Ints outer = ops::strides_of(whole), inner = ops::strides_of(part);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (part[i] > 0) p.offset += starts[i] * outer[i];
    p.axes.push_back({part[i], inner[i], part[i] > 1 ? steps[i] * outer[i] : 0});
  }
  return p;
}

// Calls fn(offset in the part, offset in the array) for each row along the last axis.
template <class F>
void for_rows(const std::vector<CopyAxis>& axes, F&& fn) {
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < axes.size(); ++i) rows *= axes[i].extent;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t rest = row, from = 0, to = 0;
    for (std::size_t i = axes.size() - 1; i-- > 0;) {
      const std::int64_t at = rest % axes[i].extent;
      rest /= axes[i].extent;
      from += at * axes[i].from;
      to += at * axes[i].to;
    }
    fn(from, to);
  }
}

void apply(Tensor& out, const Tensor& part, Part p, Update mode) {
  if (part.size() == 0) return;
  if (mode == Update::set) return ops::copy_strided(part, 0, out, p.offset, std::move(p.axes));
  if (p.axes.empty()) p.axes.push_back({1, 0, 0});
  with_update(mode, out.dtype(), "slice_update", [&](auto tag, auto update) {
    using T = typename decltype(tag)::type;
    const auto* from = static_cast<const T*>(part.data());
    auto* to = static_cast<T*>(out.mutable_data()) + p.offset;
    const CopyAxis last = p.axes.back();
    for_rows(p.axes, [&](std::int64_t f, std::int64_t t) {
      for (std::int64_t i = 0; i < last.extent; ++i) {
        T& at = to[t + i * last.to];
        at = update(at, from[f + i * last.from]);
      }
    });
  });
}

void run_unslice(ops::OpContext& c) {
  Tensor& out = result_tensor(c);
  const Ints ints = c.attrs().get_ints("ints");
  const Tensor& part = c.input(0);
  if (part.size() != out.size()) ops::fill_zero(out);
  apply(out, part, part_of(out.shape(), part.shape(), ints.data(), ints.data() + out.rank()), Update::set);
}

void run_slice_update(ops::OpContext& c) {
  Tensor& out = result_tensor(c);
  start_from_input(c, out);
  const Ints ints = c.attrs().get_ints("ints");
  const Tensor& part = c.input(1);
  apply(out, part, part_of(out.shape(), part.shape(), ints.data() + 1, ints.data() + 1 + out.rank()),
        static_cast<Update>(ints[0]));
}

// A part with step 1 that begins where the input says, moved so that it lies inside.
Part moving_part(ops::OpContext& c, const Shape& whole, const Shape& part, const Tensor& given) {
  const Ints axes = c.attrs().get_ints("ints");
  const auto* at = static_cast<const std::int64_t*>(given.data());
  Ints starts(whole.size(), 0);
  const Ints steps(whole.size(), 1);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(axes[i]);
    const std::int64_t start = at[i] < 0 ? at[i] + whole[axis] : at[i];
    starts[axis] = std::clamp<std::int64_t>(start, 0, whole[axis] - part[axis]);
  }
  return part_of(whole, part, starts.data(), steps.data());
}

void run_moving_slice(ops::OpContext& c) {
  Tensor& out = result_tensor(c);
  Part p = moving_part(c, c.input(0).shape(), out.shape(), c.input(1));
  if (out.size() == 0) return;
  for (CopyAxis& axis : p.axes) std::swap(axis.from, axis.to);
  ops::copy_strided(c.input(0), p.offset, out, 0, std::move(p.axes));
}

void run_moving_update(ops::OpContext& c) {
  Tensor& out = result_tensor(c);
  start_from_input(c, out);
  apply(out, c.input(1), moving_part(c, out.shape(), c.input(1).shape(), c.input(2)), Update::set);
}

void run_strided(ops::OpContext& c) {
  Tensor& out = result_tensor(c);
  if (out.size() == 0) return;
  const Ints ints = c.attrs().get_ints("ints");
  const Ints to = ops::strides_of(out.shape());
  std::vector<CopyAxis> axes;
  for (std::size_t i = 0; i < out.rank(); ++i) axes.push_back({out.dim(i), ints[i + 1], to[i]});
  ops::copy_strided(c.input(0), ints[0], out, 0, std::move(axes));
}

void run_strided_sum(ops::OpContext& c) {
  Tensor& out = result_tensor(c);
  ops::fill_zero(out);
  const Tensor& part = c.input(0);
  const Ints ints = c.attrs().get_ints("ints");
  const Ints from = ops::strides_of(part.shape());
  Part p{ints[0], {}};
  for (std::size_t i = 0; i < part.rank(); ++i) p.axes.push_back({part.dim(i), from[i], ints[i + 1]});
  apply(out, part, std::move(p), Update::add);
}

}  // namespace

const ArrayOp& unslice_op() {
  static const ArrayOp op = array_op("Unslice", run_unslice);
  return op;
}
const ArrayOp& slice_update_op() {
  static const ArrayOp op = updating_op("SliceUpdate", run_slice_update);
  return op;
}
const ArrayOp& moving_slice_op() {
  static const ArrayOp op = array_op("MovingSlice", run_moving_slice);
  return op;
}
const ArrayOp& moving_update_op() {
  static const ArrayOp op = updating_op("MovingUpdate", run_moving_update);
  return op;
}
const ArrayOp& strided_op() {
  static const ArrayOp op = array_op("Strided", run_strided);
  return op;
}
const ArrayOp& strided_sum_op() {
  static const ArrayOp op = array_op("StridedSum", run_strided_sum);
  return op;
}

}  // namespace sdx::array::detail
