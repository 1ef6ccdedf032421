// Views of an array's memory by strides.

#include <sdx/array.hpp>

#include "array/array_op.h"
#include "array/ops/batch.h"
#include "array/ops/common.h"
#include "array/ops/index/slice.h"
#include "array/ops/reductions.h"
#include "kernels/cpu/movement/blocks.h"
#include "ops/tensor/movement.h"

namespace sdx::array {
namespace detail {
namespace {

// params.ints of both kinds holds the rank of the result, its shape, the offset, and strides in the array's memory.
struct View {
  Shape shape;
  std::vector<std::int64_t> place;  // the offset, then strides
};

View view_of(const Params& p) {
  const auto rank = static_cast<std::size_t>(p.ints[0]);
  const auto begin = p.ints.begin() + 1;
  return {Shape(begin, begin + static_cast<std::ptrdiff_t>(rank)),
          std::vector<std::int64_t>(begin + static_cast<std::ptrdiff_t>(rank), p.ints.end())};
}

Params params_of(const Shape& shape, const std::vector<std::int64_t>& place) {
  Params p;
  p.ints.push_back(static_cast<std::int64_t>(shape.size()));
  p.ints.insert(p.ints.end(), shape.begin(), shape.end());
  p.ints.insert(p.ints.end(), place.begin(), place.end());
  return p;
}

// Attribute "ints" holds the offset, then strides.
PartLayout layout_of(const ops::OpContext& c) {
  const std::vector<std::int64_t> ints = c.attrs().get_ints("ints");
  return {ints[0], {ints.begin() + 1, ints.end()}};
}

void run_strided(ops::OpContext& c) {
  Tensor& out = result_tensor(c);
  take_part(c.input(0), layout_of(c), out);
}

void emit_strided(Emitter& e) { e.results<run_strided>("Strided", e.inputs(), {{"ints", view_of(e.params()).place}}); }

// Adds the elements of a view up where they came from: the gradient of the view.
void run_strided_sum(ops::OpContext& c) {
  Tensor& out = result_tensor(c);
  ops::fill_zero(out);
  const Tensor& part = c.input(0);
  if (part.size() == 0) return;
  const PartLayout layout = layout_of(c);
  cpu::add_strided_to(out.dtype(), part.data(), at_element(out, layout.offset), part.shape(), layout.strides);
}

void emit_strided_sum(Emitter& e) { e.results<run_strided_sum>("StridedSum", e.inputs(), {{"ints", view_of(e.params()).place}}); }

array strided(const array& flat, const Shape& shape, const std::vector<std::int64_t>& place, const StreamOrDevice& s = {});
array strided_sum(const array& part, std::int64_t length, const std::vector<std::int64_t>& place);

std::vector<array> strided_vjp(const VjpCall& c) {
  return {strided_sum(c.of_outputs[0], c.inputs[0].size(), view_of(c.params).place)};
}

std::vector<array> strided_sum_vjp(const VjpCall& c) {
  return {strided(c.of_outputs[0], c.inputs[0].shape(), view_of(c.params).place)};
}

// A batch is one long array, in which the elements of the batch lie a whole array apart.
VmapResult strided_vmap(const VmapCall& c) {
  View v = view_of(c.params);
  const array a = batch_first(c, 0);
  v.shape.insert(v.shape.begin(), c.batch);
  v.place.insert(v.place.begin() + 1, c.batch == 0 ? 0 : a.size() / c.batch);
  return batch_result(strided(reshape(a, {-1}), v.shape, v.place));
}

VmapResult strided_sum_vmap(const VmapCall& c) {
  View v = view_of(c.params);
  const std::int64_t length = v.shape[0];
  v.place.insert(v.place.begin() + 1, length);
  return batch_result(reshape(strided_sum(batch_first(c, 0), length * c.batch, v.place), {c.batch, length}));
}

const Kind kStrided{.name = "as_strided", .emit = emit_strided, .vjp = strided_vjp, .vmap = strided_vmap};
const Kind kStridedSum{.name = "as_strided", .emit = emit_strided_sum, .vjp = strided_sum_vjp, .vmap = strided_sum_vmap};

array strided(const array& flat, const Shape& shape, const std::vector<std::int64_t>& place, const StreamOrDevice& s) {
  return make(kStrided, flat.dtype(), shape, {flat}, params_of(shape, place), s);
}

// Any number of elements may be added at one place, so 16-bit floats are rounded once, at the end.
array strided_sum(const array& part, std::int64_t length, const std::vector<std::int64_t>& place) {
  if (is_half(part.dtype())) return astype(strided_sum(astype(part, Dtype::float32), length, place), part.dtype());
  return make(kStridedSum, part.dtype(), {length}, {part}, params_of({length}, place));
}

}  // namespace
}  // namespace detail

array contiguous(const array& a, bool, StreamOrDevice) { return a; }

array as_strided(const array& a, const std::optional<Shape>& shape, const std::optional<Shape>& strides, std::int64_t offset,
                 StreamOrDevice s) {
  const Shape& out = shape ? *shape : a.shape();
  element_count(out);
  Shape by = strides ? *strides : Shape(out.size(), 1);
  if (!strides) {
    for (std::size_t i = out.size(); i-- > 1;) by[i - 1] = by[i] * out[i];
  }
  if (by.size() != out.size()) detail::refuse("as_strided", "{} strides for shape {}", by.size(), to_string(out));
  // Computed in floating point, which cannot overflow: these bounds only tell inside from outside.
  double low = static_cast<double>(offset), high = low;
  bool any = true;
  for (std::size_t i = 0; i < out.size(); ++i) {
    any = any && out[i] > 0;
    (by[i] < 0 ? low : high) += static_cast<double>(out[i] - 1) * static_cast<double>(by[i]);
  }
  if (any && (low < 0 || high >= static_cast<double>(a.size()))) {
    detail::refuse("as_strided", "shape {}, strides {} and offset {} leave the {} elements of the array", to_string(out),
                   to_string(by), offset, a.size());
  }
  by.insert(by.begin(), offset);
  return detail::strided(reshape(a, {-1}, s), out, by, s);
}

}  // namespace sdx::array
