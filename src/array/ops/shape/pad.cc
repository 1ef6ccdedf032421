// Adding elements at the ends of axes. ONNX Pad-21.

#include <algorithm>

#include <sdx/array.hpp>

#include "array/emitter.h"
#include "array/ops/batch.h"
#include "array/ops/common.h"

namespace sdx::array {
namespace detail {
namespace {

// Inputs: the array, the value. params.ints holds the number of elements before, for each axis, then of those after.
void emit_pad(Emitter& e) {
  e.result(e.op("Pad", {e.in(0), e.ints(e.params().ints), e.in(1)}, {{"mode", std::string("constant")}}));
}

// Returns the part of the result that is the input.
array unpadded(const array& padded, const Shape& inner, const std::vector<std::int64_t>& pads) {
  Shape start(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(inner.size())), stop = start;
  for (std::size_t i = 0; i < inner.size(); ++i) stop[i] += inner[i];
  return slice(padded, start, stop);
}

std::vector<array> pad_vjp(const VjpCall& c) {
  const array& g = c.of_outputs[0];
  const array inner = unpadded(g, c.inputs[0].shape(), c.params.ints);
  std::vector<array> out;
  for (const std::size_t i : c.wanted) {
    // The gradient of the value sums over everything else.
    if (i == 0) out.push_back(inner);
    if (i == 1) out.push_back(add(sum(g), multiply(sum(inner), array(-1, g.dtype()))));
  }
  return out;
}

VmapResult pad_vmap(const VmapCall& c);
const Kind kPad{.name = "pad", .emit = emit_pad, .vjp = pad_vjp, .vmap = pad_vmap};

array pad_constant(const array& a, std::vector<std::int64_t> pads, const array& value, const StreamOrDevice& s = {}) {
  const std::size_t rank = a.shape().size();
  Shape shape = a.shape();
  for (std::size_t i = 0; i < rank; ++i) shape[i] = extent_sum("pad", shape[i], pads[i] + pads[i + rank]);
  Params params;
  params.ints = std::move(pads);
  return make(kPad, a.dtype(), std::move(shape), {a, as_type(value, a.dtype(), s)}, std::move(params), s);
}

VmapResult pad_vmap(const VmapCall& c) {
  std::vector<std::int64_t> pads = c.params.ints;
  pads.insert(pads.begin() + static_cast<std::ptrdiff_t>(pads.size() / 2), 0);
  pads.insert(pads.begin(), 0);
  if (!is_batched(c, 1)) return batch_result(pad_constant(batch_first(c, 0), std::move(pads), c.inputs[1]));
  // Each element of the batch has its own value, which is added where its array has no elements.
  const array a = batched(c, 0);
  const array inside = pad_constant(a, pads, array(0));
  const array outside = pad_constant(zeros_of(a.shape(), a.dtype()), pads, array(1));
  Shape wide(a.shape().size(), 1);
  wide[0] = c.batch;
  return batch_result(add(inside, multiply(outside, reshape(c.inputs[1], wide))));
}

// Extends an axis by positions that mirror it, with its ends or without them, or that repeat its ends.
array pad_by_positions(const array& a, std::size_t axis, std::int64_t before, std::int64_t after, const std::string& mode,
                       const StreamOrDevice& s) {
  const std::int64_t extent = a.shape()[axis];
  if (extent == 0) refuse("pad", "mode '{}' needs elements, and shape {} has none", mode, to_string(a.shape()));
  Tensor positions(Dtype::int64, {extent_sum("pad", extent, before + after)});
  const auto at = positions.mutable_values<std::int64_t>();
  const std::int64_t period = mode == "reflect" ? std::max<std::int64_t>(1, 2 * extent - 2) : 2 * extent;
  for (std::int64_t i = 0; i < positions.size(); ++i) {
    std::int64_t p = i - before;
    if (mode == "edge") {
      p = std::clamp<std::int64_t>(p, 0, extent - 1);
    } else {
      p = (p % period + period) % period;
      if (p >= extent) p = mode == "reflect" ? period - p : period - 1 - p;
    }
    at[static_cast<std::size_t>(i)] = p;
  }
  return take(a, array(std::move(positions)), static_cast<int>(axis), s);
}

}  // namespace
}  // namespace detail

array pad(const array& a, const std::vector<std::pair<int, int>>& pad_width, const std::string& mode,
          const array& constant_values, StreamOrDevice s) {
  const std::size_t rank = a.shape().size();
  if (pad_width.size() != rank && pad_width.size() != 1) {
    detail::refuse("pad", "{} pairs for an array with {} dimensions; expected one for each, or one", pad_width.size(), rank);
  }
  const bool constant = mode == "constant";
  if (!constant && mode != "edge" && mode != "reflect" && mode != "symmetric") {
    detail::refuse("pad", "mode '{}'; expected constant, edge, reflect or symmetric", mode);
  }
  std::vector<std::int64_t> pads(2 * rank);
  bool none = true;
  for (std::size_t i = 0; i < rank; ++i) {
    const auto& [before, after] = pad_width.size() == 1 ? pad_width[0] : pad_width[i];
    if (before < 0 || after < 0) detail::refuse("pad", "({}, {}) for axis {}; expected 0 or more", before, after, i);
    pads[i] = before;
    pads[i + rank] = after;
    none = none && before == 0 && after == 0;
  }
  if (none) return a;
  if (constant) {
    if (constant_values.size() != 1) {
      detail::refuse("pad", "constant_values of shape {}; expected a scalar", to_string(constant_values.shape()));
    }
    return detail::pad_constant(a, std::move(pads), reshape(constant_values, {}, s), s);
  }
  array out = a;
  for (std::size_t i = 0; i < rank; ++i) {
    if (pads[i] != 0 || pads[i + rank] != 0) out = detail::pad_by_positions(out, i, pads[i], pads[i + rank], mode, s);
  }
  return out;
}

array pad(const array& a, int pad_width, const std::string& mode, const array& constant_values, StreamOrDevice s) {
  return pad(a, std::vector<std::pair<int, int>>{{pad_width, pad_width}}, mode, constant_values, s);
}

}  // namespace sdx::array
