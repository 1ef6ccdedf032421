// Joining arrays along an axis, and splitting them. ONNX Concat-13, Split-18.

#include <algorithm>
#include <climits>
#include <cstring>

#include <sdx/array.hpp>

#include "array/emitter.h"
#include "array/memory.h"
#include "array/ops/batch.h"
#include "array/ops/common.h"

namespace sdx::array {
namespace detail {
namespace {

// params.ints holds the axis.
void emit_concatenate(Emitter& e) {
  std::vector<ValueId> parts;
  for (std::size_t i = 0; i < e.num_inputs(); ++i) parts.push_back(e.in(i));
  e.result(e.op("Concat", std::move(parts), {{"axis", e.params().ints[0]}}));
}

std::vector<array> concatenate_vjp(const VjpCall& c) {
  const auto axis = static_cast<std::size_t>(c.params.ints[0]);
  Shape ends;
  std::int64_t end = 0;
  for (const array& a : c.inputs) ends.push_back(end += a.shape()[axis]);
  ends.pop_back();
  const std::vector<array> parts = split(c.of_outputs[0], ends, static_cast<int>(axis));
  std::vector<array> out;
  for (const std::size_t i : c.wanted) out.push_back(parts[i]);
  return out;
}

VmapResult concatenate_vmap(const VmapCall& c) {
  std::vector<array> parts;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) parts.push_back(batched(c, i));
  return batch_result(concatenate(parts, static_cast<int>(c.params.ints[0]) + 1));
}

const Kind kConcatenate{.name = "concatenate", .emit = emit_concatenate, .vjp = concatenate_vjp, .vmap = concatenate_vmap};

// params.ints holds the axis, then the positions between parts.
void emit_split(Emitter& e) {
  const auto axis = static_cast<std::size_t>(e.params().ints[0]);
  std::vector<std::int64_t> extents;
  for (std::size_t i = 0; i < e.num_results(); ++i) extents.push_back(e.out_shape(i)[axis]);
  const auto parts = e.op_many("Split", {e.in(0), e.ints(extents)}, e.num_results(), {{"axis", static_cast<std::int64_t>(axis)}});
  for (std::size_t i = 0; i < parts.size(); ++i) e.result(parts[i], i);
}

std::vector<array> split_vjp(const VjpCall& c) { return {concatenate(c.of_outputs, static_cast<int>(c.params.ints[0]))}; }

VmapResult split_vmap(const VmapCall& c) {
  const Shape positions(c.params.ints.begin() + 1, c.params.ints.end());
  VmapResult out{split(batch_first(c, 0), positions, static_cast<int>(c.params.ints[0]) + 1), {}};
  out.out_axes.assign(out.outputs.size(), 0);
  return out;
}

// Copies all parts into one block, each to a place where vectors may begin.
void split_parts(const Tensor& input, const Params& params, std::vector<Result>& results) {
  constexpr std::size_t kAlign = 64;
  const auto axis = static_cast<std::size_t>(params.ints[0]);
  std::size_t outer = 1, inner = input.bytes() / static_cast<std::size_t>(std::max<std::int64_t>(1, input.size())), all = 0;
  for (std::size_t i = 0; i < axis; ++i) outer *= static_cast<std::size_t>(input.dim(i));
  for (std::size_t i = axis + 1; i < input.rank(); ++i) inner *= static_cast<std::size_t>(input.dim(i));
  const auto row_of = [&](const Result& r) { return static_cast<std::size_t>(r.shape[axis]) * inner; };
  const auto place_of = [&](const Result& r) { return (outer * row_of(r) + kAlign - 1) / kAlign * kAlign; };
  for (const Result& r : results) all += place_of(r);
  Tensor block = new_tensor(Dtype::uint8, {static_cast<std::int64_t>(all)});
  const std::shared_ptr<void> owner = std::const_pointer_cast<void>(block.owner());
  auto* to = static_cast<std::byte*>(block.mutable_data());
  const auto* from = static_cast<const std::byte*>(input.data());
  const std::size_t whole_row = static_cast<std::size_t>(input.dim(axis)) * inner;
  for (Result& r : results) {
    const std::size_t row = row_of(r);
    for (std::size_t o = 0; o < outer && row != 0; ++o) std::memcpy(to + o * row, from + o * whole_row, row);
    r.tensor = Tensor::view_mutable(to, r.dtype, r.shape, owner);
    to += place_of(r);
    from += row;
  }
}

const Kind kSplit{.name = "split", .emit = emit_split, .vjp = split_vjp, .vmap = split_vmap, .parts = split_parts};

// Returns the shape of concatenated arrays.
Shape joined(const std::vector<array>& arrays, std::size_t axis) {
  Shape shape = arrays[0].shape();
  for (std::size_t i = 1; i < arrays.size(); ++i) {
    const Shape& next = arrays[i].shape();
    bool fits = next.size() == shape.size();
    for (std::size_t d = 0; fits && d < shape.size(); ++d) fits = d == axis || next[d] == shape[d];
    if (!fits) {
      refuse("concatenate", "shapes {} and {} differ outside axis {}", to_string(arrays[0].shape()), to_string(next), axis);
    }
    shape[axis] = extent_sum("concatenate", shape[axis], next[axis]);
  }
  return shape;
}

}  // namespace
}  // namespace detail

array concatenate(const std::vector<array>& arrays, std::optional<int> axis, StreamOrDevice s) {
  if (arrays.empty()) detail::refuse("concatenate", "there are no arrays; give at least one");
  if (!axis) {
    std::vector<array> flat;
    for (const array& a : arrays) flat.push_back(reshape(a, {-1}, s));
    return concatenate(flat, 0, s);
  }
  const auto at = static_cast<std::size_t>(detail::axis_of("concatenate", *axis, arrays[0].shape().size()));
  Shape shape = detail::joined(arrays, at);
  if (arrays.size() == 1) return arrays[0];
  Dtype type = arrays[0].dtype();
  for (const array& a : arrays) type = detail::promote(type, a.dtype());
  std::vector<array> parts;
  parts.reserve(arrays.size());
  for (const array& a : arrays) parts.push_back(detail::as_type(a, type, s));
  detail::Params params;
  params.ints.push_back(static_cast<std::int64_t>(at));
  return detail::make(detail::kConcatenate, type, std::move(shape), std::move(parts), std::move(params), s);
}

array concat(const std::vector<array>& arrays, std::optional<int> axis, StreamOrDevice s) { return concatenate(arrays, axis, s); }

array stack(const std::vector<array>& arrays, int axis, StreamOrDevice s) {
  if (arrays.empty()) detail::refuse("stack", "there are no arrays; give at least one");
  for (const array& a : arrays) {
    if (a.shape() != arrays[0].shape()) {
      detail::refuse("stack", "shapes {} and {} differ", to_string(arrays[0].shape()), to_string(a.shape()));
    }
  }
  const int at = detail::axis_of("stack", axis, arrays[0].shape().size() + 1);
  std::vector<array> parts;
  parts.reserve(arrays.size());
  for (const array& a : arrays) parts.push_back(expand_dims(a, at, s));
  return concatenate(parts, at, s);
}

std::vector<array> split(const array& a, int sections, int axis, StreamOrDevice s) {
  const int at = detail::axis_of("split", axis, a.shape().size());
  const std::int64_t extent = a.shape()[static_cast<std::size_t>(at)];
  if (sections <= 0 || extent % sections != 0) {
    detail::refuse("split", "axis {} of shape {} does not divide into {} equal parts", axis, to_string(a.shape()), sections);
  }
  Shape positions;
  for (std::int64_t i = 1; i < sections; ++i) positions.push_back(i * (extent / sections));
  return split(a, positions, at, s);
}

std::vector<array> split(const array& a, const Shape& indices, int axis, StreamOrDevice s) {
  const int at = detail::axis_of("split", axis, a.shape().size());
  if (indices.empty()) return {a};
  const std::int64_t extent = a.shape()[static_cast<std::size_t>(at)];
  detail::Params params;
  params.ints.push_back(at);
  std::vector<std::pair<Dtype, Shape>> results;
  std::int64_t from = 0;
  bool in_order = true;
  for (std::size_t i = 0; i <= indices.size(); ++i) {
    std::int64_t to = i == indices.size() ? extent : indices[i] < 0 ? indices[i] + extent : indices[i];
    to = std::clamp<std::int64_t>(to, 0, extent);
    in_order = in_order && to >= from;
    Shape shape = a.shape();
    shape[static_cast<std::size_t>(at)] = std::max<std::int64_t>(0, to - from);
    results.emplace_back(a.dtype(), std::move(shape));
    if (i < indices.size()) params.ints.push_back(to);
    from = to;
  }
  // Positions may go back, as in NumPy: parts then overlap.
  if (!in_order) {
    std::vector<array> parts;
    Shape start(a.shape().size(), 0), stop = a.shape();
    for (std::size_t i = 0; i <= indices.size(); ++i) {
      start[static_cast<std::size_t>(at)] = i == 0 ? 0 : params.ints[i];
      stop[static_cast<std::size_t>(at)] = i == indices.size() ? extent : params.ints[i + 1];
      parts.push_back(slice(a, start, stop, {}, s));
    }
    return parts;
  }
  return detail::make_many(detail::kSplit, std::move(results), {a}, std::move(params), s);
}

std::vector<array> unstack(const array& a, int axis, StreamOrDevice s) {
  const int at = detail::axis_of("unstack", axis, a.shape().size());
  const std::int64_t extent = a.shape()[static_cast<std::size_t>(at)];
  if (extent == 0) return {};
  if (extent > INT_MAX) detail::refuse("unstack", "axis {} of shape {} gives too many arrays", axis, to_string(a.shape()));
  std::vector<array> parts = split(a, static_cast<int>(extent), at, s);
  for (array& part : parts) part = squeeze(part, at, s);
  return parts;
}

}  // namespace sdx::array
