// Slice: ai.onnx 1 (attributes), 10 (inputs, steps), 11, 13.

#include <algorithm>

#include "base/checked.h"
#include "ops/context.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/movement.h"
#include "ops/tensor/shape_values.h"
#include "ops/tensor/signatures.h"
#include "ops/tensor/slice.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

// The place of a slice position in [0, extent], for an extent or position that is an expression.
Dim clamped(const Dim& position, const Dim& extent) {
  if (position.is_const() && position.value() < 0) return most(extent + position, Dim(0));
  if (position == extent) return extent;
  if (position.is_const() && position.value() >= INT32_MAX) return extent;  // "to the end", as exporters write it
  if (surely_not_negative(position)) return least(position, extent);
  return Dim::unknown();
}

Dim symbolic_count(const Dim& start, const Dim& end, const Dim& step, const Dim& extent) {
  if (!step.is_const()) return Dim::unknown();
  if (step.value() < 0) {
    const bool whole =
        start.is_const() && end.is_const() && (start.value() == -1 || start.value() >= INT32_MAX) && end.value() <= INT32_MIN;
    return whole && step.value() > INT64_MIN ? ceil_div(extent, Dim(-step.value())) : Dim::unknown();
  }
  const Dim from = clamped(start, extent);
  const Dim to = clamped(end, extent);
  const Dim length = to - from;
  return ceil_div(surely_not_negative(length) ? length : most(length, Dim(0)), step);
}

Dim count_of(const Dim& start, const Dim& end, const Dim& step, const Dim& extent) {
  if (step.is_const() && step.value() == 0) fail(ErrorCode::invalid_model, "the step is 0; use a step other than 0");
  if (start.is_const() && end.is_const() && step.is_const() && extent.is_const()) {
    return slice_range(start.value(), end.value(), step.value(), extent.value()).count;
  }
  return symbolic_count(start, end, step, extent);
}

std::vector<Dim> elements_or_unknown(const InferContext& c, std::size_t i, std::size_t count, std::int64_t otherwise) {
  if (!c.has_input(i)) return std::vector<Dim>(count, Dim(otherwise));
  if (const auto* elements = c.sym(i)) {
    if (elements->size() != count) c.fail("input {} lists {} numbers; expected {}", i, elements->size(), count);
    return *elements;
  }
  return std::vector<Dim>(count);
}

Ints first_axes(std::size_t count) {
  Ints axes;
  for (std::size_t i = 0; i < count; ++i) axes.push_back(static_cast<std::int64_t>(i));
  return axes;
}

void infer_ranges(InferContext& c, const std::vector<Dim>& starts, const std::vector<Dim>& ends, const std::vector<Dim>& steps,
                  const Ints& axes_given) {
  if (starts.size() != axes_given.size()) c.fail("'axes' lists {} axes for {} starts", axes_given.size(), starts.size());
  const SymShape& in = *c.shape(0);
  const Ints axes = normalize_axes(axes_given, in.size());
  SymShape out = in;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    Dim& d = out[static_cast<std::size_t>(axes[i])];
    d = count_of(starts[i], ends[i], steps[i], d);
  }
  c.output(0, c.dtype(0), std::move(out));
  const std::vector<Dim>* elements = c.sym(0);
  if (elements == nullptr || in.size() != 1 || axes.empty()) return;
  if (!starts[0].is_const() || !ends[0].is_const() || !steps[0].is_const()) return;
  const SliceRange r =
      slice_range(starts[0].value(), ends[0].value(), steps[0].value(), static_cast<std::int64_t>(elements->size()));
  std::vector<Dim> picked;
  for (std::int64_t i = 0, at = r.start; i < r.count; ++i) {
    picked.push_back((*elements)[static_cast<std::size_t>(at)]);
    if (i + 1 < r.count) at += r.step;
  }
  c.output_sym(0, std::move(picked));
}

void infer_slice1(InferContext& c) {
  const auto attr = parse<SliceAttrs>(c);
  const Ints starts = to_vector(attr.starts);
  const Ints ends = to_vector(attr.ends);
  if (starts.size() != ends.size()) c.fail("{} starts and {} ends are given; expected as many", starts.size(), ends.size());
  if (c.shape(0) == nullptr) return c.output(0, c.dtype(0));
  const Ints axes = attr.axes ? to_vector(*attr.axes) : first_axes(starts.size());
  infer_ranges(c, to_sym(starts), to_sym(ends), SymShape(starts.size(), Dim(1)), axes);
}

void infer_slice(InferContext& c) {
  const SymShape* in = c.shape(0);
  if (in == nullptr) return c.output(0, c.dtype(0));
  std::optional<std::int64_t> count = known_length(c, 1);
  if (!count) count = known_length(c, 2);
  std::optional<Ints> axes;
  if (c.has_input(3)) {
    axes = known_ints(c, 3);
  } else if (count && *count <= static_cast<std::int64_t>(in->size())) {
    axes = first_axes(static_cast<std::size_t>(*count));
  } else if (count) {
    c.fail("{} starts for an input of rank {}", *count, in->size());
  }
  if (!axes) return c.output(0, c.dtype(0), SymShape(in->size()));
  infer_ranges(c, elements_or_unknown(c, 1, axes->size(), 0), elements_or_unknown(c, 2, axes->size(), 0),
               elements_or_unknown(c, 4, axes->size(), 1), *axes);
}

void slice(OpContext& c, const Ints& starts, const Ints& ends, const Ints& steps, const Ints& given_axes) {
  const Tensor in = widened(c.input(0));
  if (starts.size() != ends.size() || starts.size() != steps.size() || starts.size() != given_axes.size()) {
    c.fail("starts, ends, axes and steps must have one length; received {}, {}, {}, {}", starts.size(), ends.size(),
           given_axes.size(), steps.size());
  }
  const Ints axes = normalize_axes(given_axes, in.rank());
  const Ints from = strides_of(in.shape());
  Shape shape = in.shape();
  std::vector<CopyAxis> loops;
  for (std::size_t d = 0; d < shape.size(); ++d) loops.push_back({shape[d], from[d], 0});
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto d = static_cast<std::size_t>(axes[i]);
    const SliceRange r = slice_range(starts[i], ends[i], steps[i], shape[d]);
    shape[d] = r.count;
    if (r.count > 0) offset += r.start * from[d];
    loops[d] = {r.count, r.count > 1 ? r.step * from[d] : 0, 0};
  }
  const Ints to = strides_of(shape);
  for (std::size_t d = 0; d < shape.size(); ++d) loops[d].to = to[d];
  produce(c, 0, c.input(0).dtype(), shape, [&](Tensor& out) { copy_strided(in, offset, out, 0, std::move(loops)); });
}

void run_slice1(OpContext& c) {
  const auto attr = parse<SliceAttrs>(c);
  const Ints starts = to_vector(attr.starts);
  const Ints axes = attr.axes ? to_vector(*attr.axes) : first_axes(starts.size());
  slice(c, starts, to_vector(attr.ends), Ints(starts.size(), 1), axes);
}

void run_slice(OpContext& c) {
  const Ints starts = to_ints(c.input(1));
  slice(c, starts, to_ints(c.input(2)), c.has_input(4) ? to_ints(c.input(4)) : Ints(starts.size(), 1),
        c.has_input(3) ? to_ints(c.input(3)) : first_axes(starts.size()));
}

}  // namespace

SliceRange slice_range(std::int64_t start, std::int64_t end, std::int64_t step, std::int64_t extent) {
  if (step == 0) fail(ErrorCode::invalid_model, "the step is 0; use a step other than 0");
  if (start < 0) start += extent;
  if (end < 0) end += extent;
  if (step > 0) {
    start = std::clamp<std::int64_t>(start, 0, extent);
    end = std::clamp<std::int64_t>(end, 0, extent);
    return {start, step, start < end ? (end - start - 1) / step + 1 : 0};
  }
  if (extent == 0) return {0, step, 0};
  start = std::clamp<std::int64_t>(start, 0, extent - 1);
  end = std::clamp<std::int64_t>(end, -1, extent - 1);
  return {start, step, start > end ? (end - start + 1) / step + 1 : 0};
}

void register_slice(OpTable& t) {
  OpDef slice("Slice", 1);
  slice.in("data", "T", types::any_tensor).out("output", "T", types::any_tensor).attrs<SliceAttrs>();
  t.add(std::move(slice).infer_with(infer_slice1).run_with(run_slice1));
  OpDef slice_10("Slice", 10);
  slice_10.in("data", "T", types::any_tensor).in("starts ends", "Tind", types::indices);
  slice_10.in("axes steps", "Tind", types::indices, Arity::optional);
  slice_10.out("output", "T", types::any_tensor);
  t.add(std::move(slice_10).infer_with(infer_slice).run_with(run_slice));
}

}  // namespace sdx::ops
