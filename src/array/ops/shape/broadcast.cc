// Repeating elements along axes. ONNX Expand-13.

#include <sdx/array.hpp>

#include "array/emitter.h"
#include "array/ops/batch.h"
#include "array/ops/common.h"

namespace sdx::array {
namespace detail {
namespace {

// params.ints holds the shape.
void emit_broadcast(Emitter& e) { e.result(e.op("Expand", {e.in(0), e.ints(e.out_shape())})); }

std::vector<array> broadcast_vjp(const VjpCall& c) { return {sum_to(c.of_outputs[0], c.inputs[0].shape())}; }

VmapResult broadcast_vmap(const VmapCall& c) {
  Shape to = c.params.ints;
  const array a = batch_first(c, 0);
  Shape from = a.shape();
  from.insert(from.begin() + 1, to.size() + 1 - from.size(), 1);
  to.insert(to.begin(), c.batch);
  return batch_result(broadcast_to(reshape(a, std::move(from)), to));
}

const Kind kBroadcast{.name = "broadcast_to", .emit = emit_broadcast, .vjp = broadcast_vjp, .vmap = broadcast_vmap};

}  // namespace
}  // namespace detail

array broadcast_to(const array& a, const Shape& shape, StreamOrDevice s) {
  if (a.shape() == shape) return a;
  if (a.shape().size() > shape.size() || detail::broadcast("broadcast_to", a.shape(), shape) != shape) {
    detail::refuse("broadcast_to", "shape {} does not broadcast to {}", to_string(a.shape()), to_string(shape));
  }
  element_count(shape);
  detail::Params params;
  params.ints = shape;
  return detail::make(detail::kBroadcast, a.dtype(), shape, {a}, std::move(params), s);
}

Shape broadcast_shapes(const std::vector<Shape>& shapes) {
  Shape all;
  for (const Shape& shape : shapes) all = detail::broadcast("broadcast_shapes", all, shape);
  return all;
}

std::vector<array> broadcast_arrays(const std::vector<array>& arrays, StreamOrDevice s) {
  Shape all;
  for (const array& a : arrays) all = detail::broadcast("broadcast_arrays", all, a.shape());
  std::vector<array> out;
  out.reserve(arrays.size());
  for (const array& a : arrays) out.push_back(broadcast_to(a, all, s));
  return out;
}

}  // namespace sdx::array
