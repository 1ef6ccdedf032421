// Permuting axes. ONNX Transpose-13.

#include <algorithm>
#include <numeric>

#include <sdx/array.hpp>

#include "array/emitter.h"
#include "array/ops/batch.h"
#include "array/ops/common.h"

namespace sdx::array {
namespace detail {
namespace {

// params.ints holds, for each axis of the result, the axis that it comes from.
void emit_transpose(Emitter& e) { e.result(e.op("Transpose", {e.in(0)}, {{"perm", e.params().ints}})); }

std::vector<array> transpose_vjp(const VjpCall& c);
VmapResult transpose_vmap(const VmapCall& c);

const Kind kTranspose{.name = "transpose", .emit = emit_transpose, .vjp = transpose_vjp, .vmap = transpose_vmap};

array permuted(const array& a, std::vector<std::int64_t> perm, const StreamOrDevice& s = {}) {
  if (std::is_sorted(perm.begin(), perm.end())) return a;
  Shape shape(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i) shape[i] = a.shape()[static_cast<std::size_t>(perm[i])];
  Params params;
  params.ints = std::move(perm);
  return make(kTranspose, a.dtype(), std::move(shape), {a}, std::move(params), s);
}

std::vector<array> transpose_vjp(const VjpCall& c) {
  std::vector<std::int64_t> back(c.params.ints.size());
  for (std::size_t i = 0; i < back.size(); ++i) back[static_cast<std::size_t>(c.params.ints[i])] = static_cast<std::int64_t>(i);
  return {permuted(c.of_outputs[0], std::move(back))};
}

// Moving the batch axis to the front and permuting the others is one permutation.
VmapResult transpose_vmap(const VmapCall& c) {
  std::vector<std::int64_t> perm{c.in_axes[0]};
  for (const std::int64_t axis : c.params.ints) perm.push_back(axis < c.in_axes[0] ? axis : axis + 1);
  return batch_result(permuted(c.inputs[0], std::move(perm)));
}

}  // namespace
}  // namespace detail

array transpose(const array& a, const std::optional<std::vector<int>>& axes, StreamOrDevice s) {
  const std::size_t rank = a.shape().size();
  std::vector<std::int64_t> perm(rank);
  if (!axes) {
    for (std::size_t i = 0; i < rank; ++i) perm[i] = static_cast<std::int64_t>(rank - 1 - i);
    return detail::permuted(a, std::move(perm), s);
  }
  if (axes->size() != rank) detail::refuse("transpose", "{} axes for an array with {} dimensions", axes->size(), rank);
  std::vector<bool> seen(rank, false);
  for (std::size_t i = 0; i < rank; ++i) {
    perm[i] = detail::axis_of("transpose", (*axes)[i], rank);
    if (seen[static_cast<std::size_t>(perm[i])]) detail::refuse("transpose", "axis {} is given twice", (*axes)[i]);
    seen[static_cast<std::size_t>(perm[i])] = true;
  }
  return detail::permuted(a, std::move(perm), s);
}

array permute_dims(const array& a, const std::optional<std::vector<int>>& axes, StreamOrDevice s) {
  return transpose(a, axes, s);
}

array matrix_transpose(const array& a, StreamOrDevice s) {
  if (a.ndim() < 2) detail::refuse("matrix_transpose", "shape {} has fewer than two axes", to_string(a.shape()));
  return swapaxes(a, -1, -2, s);
}

array moveaxis(const array& a, int source, int destination, StreamOrDevice s) {
  const std::size_t rank = a.shape().size();
  const int from = detail::axis_of("moveaxis", source, rank);
  const int to = detail::axis_of("moveaxis", destination, rank);
  if (from == to) return a;
  std::vector<std::int64_t> perm(rank);
  std::iota(perm.begin(), perm.end(), std::int64_t{0});
  perm.erase(perm.begin() + from);
  perm.insert(perm.begin() + to, from);
  return detail::permuted(a, std::move(perm), s);
}

array swapaxes(const array& a, int axis1, int axis2, StreamOrDevice s) {
  const std::size_t rank = a.shape().size();
  const int x = detail::axis_of("swapaxes", axis1, rank);
  const int y = detail::axis_of("swapaxes", axis2, rank);
  std::vector<std::int64_t> perm(rank);
  std::iota(perm.begin(), perm.end(), std::int64_t{0});
  std::swap(perm[static_cast<std::size_t>(x)], perm[static_cast<std::size_t>(y)]);
  return detail::permuted(a, std::move(perm), s);
}

}  // namespace sdx::array
