// Regular parts: reading, putting back among zeros, replacing. ONNX Slice-13.

#include "array/ops/index/slice.h"

#include <algorithm>

#include <sdx/array.hpp>

#include "array/array_op.h"
#include "array/ops/batch.h"
#include "array/ops/common.h"
#include "kernels/cpu/movement/transpose.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/movement.h"

namespace sdx::array {
namespace detail {
namespace {

using Ints = std::vector<std::int64_t>;

// params.ints of slices and of their gradients holds the start on each axis, then steps, then the result's shape.
Ints third(const Ints& ints, std::size_t n) {
  const auto third = static_cast<std::ptrdiff_t>(ints.size() / 3);
  return Ints(ints.begin() + third * static_cast<std::ptrdiff_t>(n), ints.begin() + third * static_cast<std::ptrdiff_t>(n + 1));
}

Steps steps_of(const Ints& ints) { return {third(ints, 0), third(ints, 1)}; }

Params params_of(const Steps& steps, const Shape& shape) {
  Params p;
  p.ints.reserve(3 * shape.size());
  p.ints = steps.start;
  p.ints.insert(p.ints.end(), steps.step.begin(), steps.step.end());
  p.ints.insert(p.ints.end(), shape.begin(), shape.end());
  return p;
}

// Puts a whole batch axis in front.
Steps behind_batch(Steps steps) {
  steps.start.insert(steps.start.begin(), 0);
  steps.step.insert(steps.step.begin(), 1);
  return steps;
}

Shape behind_batch(Shape shape, std::int64_t batch) {
  shape.insert(shape.begin(), batch);
  return shape;
}

void emit_slice(Emitter& e) {
  const Steps steps = steps_of(e.params().ints);
  Ints starts, ends, axes, by;
  for (std::size_t i = 0; i < e.out_shape().size(); ++i) {
    const std::int64_t count = e.out_shape()[i], start = steps.start[i], step = steps.step[i];
    if (count == e.shape(0)[i] && step == 1) continue;
    const std::int64_t end = start + (count - 1) * step + (step > 0 ? 1 : -1);
    starts.push_back(start);
    ends.push_back(count == 0 ? start : end < 0 ? INT64_MIN : end);
    axes.push_back(static_cast<std::int64_t>(i));
    by.push_back(step);
  }
  e.result(e.op("Slice", {e.in(0), e.ints(starts), e.ints(ends), e.ints(axes), e.ints(by)}));
}

std::vector<array> slice_vjp(const VjpCall& c) {
  return {unslice(c.of_outputs[0], c.inputs[0].shape(), steps_of(c.params.ints))};
}

VmapResult slice_vmap(const VmapCall& c) {
  const Ints& ints = c.params.ints;
  return batch_result(strided_slice(batch_first(c, 0), behind_batch(steps_of(ints)), behind_batch(third(ints, 2), c.batch)));
}

const Kind kSlice{.name = "slice", .emit = emit_slice, .vjp = slice_vjp, .vmap = slice_vmap};

// Attribute "ints" holds starts, then steps, of the part in the result, which is zero elsewhere.
void run_unslice(ops::OpContext& c) {
  Tensor& out = result_tensor(c);
  const Ints ints = c.attrs().get_ints("ints");
  const Tensor& part = c.input(0);
  if (part.size() != out.size()) ops::fill_zero(out);
  put_part(part, part_layout(out.shape(), part.shape(), ints.data(), ints.data() + out.rank()), out);
}

void emit_unslice(Emitter& e) { e.results<run_unslice>("Unslice", e.inputs(), {{"ints", e.params().ints}}); }

std::vector<array> unslice_vjp(const VjpCall& c) {
  return {strided_slice(c.of_outputs[0], steps_of(c.params.ints), c.inputs[0].shape())};
}

VmapResult unslice_vmap(const VmapCall& c) {
  const Ints& ints = c.params.ints;
  return batch_result(unslice(batch_first(c, 0), behind_batch(third(ints, 2), c.batch), behind_batch(steps_of(ints))));
}

const Kind kUnslice{.name = "unslice", .emit = emit_unslice, .vjp = unslice_vjp, .vmap = unslice_vmap};

}  // namespace

PartLayout part_layout(const Shape& whole, const Shape& part, const std::int64_t* starts, const std::int64_t* steps) {
  PartLayout p;
  const Ints strides = ops::strides_of(whole);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (part[i] > 0) p.offset += starts[i] * strides[i];
    p.strides.push_back(part[i] > 1 ? steps[i] * strides[i] : 0);
  }
  return p;
}

void take_part(const Tensor& whole, const PartLayout& layout, Tensor& out) {
  cpu::copy_strided(at_element(whole, layout.offset), out.mutable_data(), bit_width(out.dtype()) / 8U,
                    static_cast<int>(out.rank()), out.shape().data(), layout.strides.data());
}

void put_part(const Tensor& part, const PartLayout& layout, Tensor& out) {
  cpu::copy_strided_to(part.data(), at_element(out, layout.offset), bit_width(out.dtype()) / 8U, static_cast<int>(part.rank()),
                       part.shape().data(), layout.strides.data());
}

array strided_slice(const array& a, const Steps& steps, const Shape& counts, const StreamOrDevice& s) {
  const bool whole = counts == a.shape() && std::all_of(steps.step.begin(), steps.step.end(), [](auto v) { return v == 1; });
  if (whole) return a;
  return make(kSlice, a.dtype(), counts, {a}, params_of(steps, counts), s);
}

array unslice(const array& part, const Shape& shape, const Steps& steps, const StreamOrDevice& s) {
  return make(kUnslice, part.dtype(), shape, {part}, params_of(steps, shape), s);
}

Range range_of(const char* operation, const Slice& slice, std::int64_t extent) {
  const std::int64_t step = std::max(slice.step.value_or(1), -INT64_MAX);
  if (step == 0) refuse(operation, "the step is 0; use a step other than 0");
  const auto inside = [&](std::int64_t at, std::int64_t low, std::int64_t high) {
    return std::clamp(at < 0 ? at + extent : at, low, high);
  };
  if (step > 0) {
    const std::int64_t start = slice.start ? inside(*slice.start, 0, extent) : 0;
    const std::int64_t stop = slice.stop ? inside(*slice.stop, 0, extent) : extent;
    return {start, step, start < stop ? (stop - start - 1) / step + 1 : 0};
  }
  const std::int64_t start = slice.start ? inside(*slice.start, -1, extent - 1) : extent - 1;
  const std::int64_t stop = slice.stop ? inside(*slice.stop, -1, extent - 1) : -1;
  const std::int64_t count = start > stop ? (start - stop - 1) / -step + 1 : 0;
  return {std::max<std::int64_t>(start, 0), step, count};
}

namespace {

struct Settled {
  Steps steps;
  Shape counts;
};

Settled settle(const char* operation, const array& a, const Shape& start, const Shape& stop, const Shape& strides) {
  const std::size_t rank = a.shape().size();
  if (start.size() != rank || stop.size() != rank || (!strides.empty() && strides.size() != rank)) {
    refuse(operation, "{} starts, {} stops and {} strides for an array with {} dimensions", start.size(), stop.size(),
           strides.size(), rank);
  }
  Settled out;
  for (std::size_t i = 0; i < rank; ++i) {
    const Range r = range_of(operation, {start[i], stop[i], strides.empty() ? 1 : strides[i]}, a.shape()[i]);
    out.steps.start.push_back(r.start);
    out.steps.step.push_back(r.step);
    out.counts.push_back(r.count);
  }
  return out;
}

}  // namespace
}  // namespace detail

array slice(const array& a, const Shape& start, const Shape& stop, const Shape& strides, StreamOrDevice s) {
  const detail::Settled part = detail::settle("slice", a, start, stop, strides);
  return detail::strided_slice(a, part.steps, part.counts, s);
}

array slice_update(const array& a, const array& update, const Shape& start, const Shape& stop, const Shape& strides, Update mode,
                   StreamOrDevice s) {
  const detail::Settled part = detail::settle("slice_update", a, start, stop, strides);
  if (detail::broadcast("slice_update", update.shape(), part.counts) != part.counts) {
    detail::refuse("slice_update", "an update of shape {} for a part of shape {}", to_string(update.shape()),
                   to_string(part.counts));
  }
  return detail::strided_update(a, broadcast_to(detail::as_type(update, a.dtype(), s), part.counts, s), part.steps, mode, s);
}

}  // namespace sdx::array
