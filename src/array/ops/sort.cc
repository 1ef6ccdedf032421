// Sorting, and the median.

#include <sdx/array.hpp>

#include <algorithm>
#include <limits>

#include "array/array_op.h"
#include "array/ops/elements.h"
#include "array/ops/reductions.h"
#include "kernels/cpu/order/sort.h"

namespace sdx::array {
namespace detail {
namespace {

enum class Sorting : std::uint8_t { sort, argsort, partition, argpartition, topk };

// Attribute "number" holds kth for partitions, the number of elements for top-k.
void run_sorting(ops::OpContext& c) {
  const Tensor& x = c.input(0);
  Tensor& y = result_tensor(c);
  const std::int64_t axis = c.attrs().get_int("axis"), number = c.attrs().get_int("number");
  const cpu::Lanes e = lanes_of(x.shape(), axis, axis);
  if (y.size() == 0) return;
  auto* places = static_cast<std::uint32_t*>(y.mutable_data());
  switch (static_cast<Sorting>(c.attrs().get_int("function"))) {
    case Sorting::sort: return cpu::sort_lanes(x.dtype(), x.data(), y.mutable_data(), e);
    case Sorting::argsort: return cpu::argsort_lanes(x.dtype(), x.data(), places, e);
    case Sorting::partition: return cpu::partition_lanes(x.dtype(), x.data(), y.mutable_data(), e, number, 0, e.count);
    case Sorting::argpartition: return cpu::argpartition_lanes(x.dtype(), x.data(), places, e, number);
    case Sorting::topk:
      return cpu::partition_lanes(x.dtype(), x.data(), y.mutable_data(), e, e.count - number, e.count - number, e.count);
  }
}

// params.ints holds axis and number.
template <Sorting kSorting>
void emit_sorting(Emitter& e) {
  const std::vector<std::int64_t>& p = e.params().ints;
  e.results<run_sorting>("Sort", {e.in(0)},
                         {{"function", static_cast<std::int64_t>(kSorting)}, {"axis", p[0]}, {"number", p[1]}});
}

// Puts gradients back where the elements came from: `places` of the results.
array put_back(const VjpCall& c, const array& places) {
  const array& x = c.inputs[0];
  return put_along_axis(zeros_like(x), stop_gradient(places), c.of_outputs[0], static_cast<int>(c.params.ints[0]));
}

std::vector<array> sort_vjp(const VjpCall& c) { return {put_back(c, argsort(c.inputs[0], static_cast<int>(c.params.ints[0])))}; }

template <Sorting kSorting>
VmapResult vmap_sorting(const VmapCall& c);

const Kind kSort{.name = "sort", .emit = emit_sorting<Sorting::sort>, .vjp = sort_vjp, .vmap = vmap_sorting<Sorting::sort>};
const Kind kArgsort{
    .name = "argsort", .emit = emit_sorting<Sorting::argsort>, .vjp = flat_vjp, .vmap = vmap_sorting<Sorting::argsort>};
const Kind kPartition{
    .name = "partition", .emit = emit_sorting<Sorting::partition>, .vjp = nullptr, .vmap = vmap_sorting<Sorting::partition>};
const Kind kArgpartition{.name = "argpartition",
                         .emit = emit_sorting<Sorting::argpartition>,
                         .vjp = flat_vjp,
                         .vmap = vmap_sorting<Sorting::argpartition>};
const Kind kTopk{.name = "topk", .emit = emit_sorting<Sorting::topk>, .vjp = nullptr, .vmap = vmap_sorting<Sorting::topk>};

const Kind& kind_of(Sorting sorting) {
  switch (sorting) {
    case Sorting::sort: return kSort;
    case Sorting::argsort: return kArgsort;
    case Sorting::partition: return kPartition;
    case Sorting::argpartition: return kArgpartition;
    case Sorting::topk: break;
  }
  return kTopk;
}

array sorted(Sorting sorting, const array& a, std::size_t axis, std::int64_t number, const StreamOrDevice& s) {
  const bool places = sorting == Sorting::argsort || sorting == Sorting::argpartition;
  Shape shape = a.shape();
  if (sorting == Sorting::topk) shape[axis] = number;
  return make(kind_of(sorting), places ? Dtype::uint32 : a.dtype(), std::move(shape), {a},
              params_of({static_cast<std::int64_t>(axis), number}), s);
}

template <Sorting kSorting>
VmapResult vmap_sorting(const VmapCall& c) {
  const int batch = c.in_axes[0];
  const std::int64_t axis = c.params.ints[0] + (c.params.ints[0] >= batch ? 1 : 0);
  return {{sorted(kSorting, c.inputs[0], static_cast<std::size_t>(axis), c.params.ints[1], {})}, {batch}};
}

array laid_out(const array& a, std::optional<int> axis, const StreamOrDevice& s) { return axis ? a : reshape(a, {a.size()}, s); }

std::size_t checked_axis(const char* operation, const array& x, std::optional<int> axis) {
  const auto along = static_cast<std::size_t>(axis_of(operation, axis.value_or(0), x.shape().size()));
  if (x.shape()[along] > std::numeric_limits<std::uint32_t>::max()) refuse(operation, "more elements than uint32 can count");
  return along;
}

std::int64_t checked_kth(const char* operation, const array& x, std::size_t axis, std::int64_t kth) {
  const std::int64_t count = x.shape()[axis];
  const std::int64_t at = kth < 0 ? kth + count : kth;
  if (at < 0 || at >= count) refuse(operation, "kth {} of axis {} of shape {}", kth, axis, to_string(x.shape()));
  return at;
}

void run_search(ops::OpContext& c) {
  const Tensor &x = c.input(0), &values = c.input(1);
  Tensor& y = result_tensor(c);
  cpu::search_sorted(x.dtype(), x.data(), x.size(), values.data(), static_cast<std::uint32_t*>(y.mutable_data()), y.size(),
                     c.attrs().get_int("right") != 0);
}

// params.ints holds whether positions are the right-hand ones.
void emit_search(Emitter& e) { e.results<run_search>("SearchSorted", {e.in(0), e.in(1)}, {{"right", e.params().ints[0]}}); }

const Kind kSearch{.name = "searchsorted", .emit = emit_search, .vjp = flat_vjp};

}  // namespace
}  // namespace detail

array sort(const array& a, std::optional<int> axis, StreamOrDevice s) {
  const array x = detail::laid_out(a, axis, s);
  return detail::sorted(detail::Sorting::sort, x, detail::checked_axis("sort", x, axis), 0, s);
}

array argsort(const array& a, std::optional<int> axis, StreamOrDevice s) {
  const array x = detail::laid_out(a, axis, s);
  return detail::sorted(detail::Sorting::argsort, x, detail::checked_axis("argsort", x, axis), 0, s);
}

// Within a transformation, elements are read at the places that argpartition() finds, so that gradients find the way back.
array partition(const array& a, int kth, std::optional<int> axis, StreamOrDevice s) {
  const array x = detail::laid_out(a, axis, s);
  const std::size_t along = detail::checked_axis("partition", x, axis);
  const std::int64_t at = detail::checked_kth("partition", x, along, kth);
  if (detail::tracing()) {
    return take_along_axis(x, stop_gradient(detail::sorted(detail::Sorting::argpartition, x, along, at, s), s),
                           static_cast<int>(along), s);
  }
  return detail::sorted(detail::Sorting::partition, x, along, at, s);
}

array argpartition(const array& a, int kth, std::optional<int> axis, StreamOrDevice s) {
  const array x = detail::laid_out(a, axis, s);
  const std::size_t along = detail::checked_axis("argpartition", x, axis);
  return detail::sorted(detail::Sorting::argpartition, x, along, detail::checked_kth("argpartition", x, along, kth), s);
}

array topk(const array& a, int k, std::optional<int> axis, StreamOrDevice s) {
  array x = detail::laid_out(a, axis, s);
  const std::size_t along = detail::checked_axis("topk", x, axis);
  if (k < 0 || k > x.shape()[along]) detail::refuse("topk", "{} of axis {} of shape {}", k, along, to_string(x.shape()));
  if (k == x.shape()[along]) return x;
  if (detail::tracing() && k > 0) {
    const array places = detail::sorted(detail::Sorting::argpartition, x, along, x.shape()[along] - k, s);
    Shape start(x.shape().size(), 0);
    start[along] = x.shape()[along] - k;
    return take_along_axis(x, slice(stop_gradient(places, s), start, x.shape(), {}, s), static_cast<int>(along), s);
  }
  return detail::sorted(detail::Sorting::topk, x, along, k, s);
}

array searchsorted(const array& sorted_sequence, const array& values, std::string_view side, StreamOrDevice s) {
  if (side != "left" && side != "right") detail::refuse("searchsorted", "side \"{}\": expected \"left\" or \"right\"", side);
  if (sorted_sequence.ndim() != 1) {
    detail::refuse("searchsorted", "the sequence has shape {}: expected one axis", to_string(sorted_sequence.shape()));
  }
  if (sorted_sequence.size() > std::numeric_limits<std::uint32_t>::max()) {
    detail::refuse("searchsorted", "more elements than uint32 can count");
  }
  const Dtype type = detail::promote(sorted_sequence.dtype(), values.dtype());
  return detail::make(detail::kSearch, Dtype::uint32, values.shape(),
                      {detail::as_type(sorted_sequence, type, s), detail::as_type(values, type, s)},
                      detail::params_of({side == "right" ? 1 : 0}), s);
}

// Returns the middle of the sorted elements, or the mean of the two in the middle; NaN if an element is.
array median(const array& a, const Axes& axis, bool keepdims, StreamOrDevice s) {
  const std::vector<std::int64_t> over = detail::axes_of("median", axis.list(), a.shape().size());
  const array x = detail::as_type(a, detail::at_least_float(a.dtype()), s);
  const std::int64_t count = detail::count_over(a, axis, "median");
  if (count == 0) detail::refuse("median", "there are no elements along the axes of {}", to_string(a.shape()));
  std::vector<int> order;
  for (std::int64_t i = 0; i < a.ndim(); ++i) {
    if (std::find(over.begin(), over.end(), i) == over.end()) order.push_back(static_cast<int>(i));
  }
  Shape rows = detail::reduced_shape(a.shape(), over, false);
  for (const std::int64_t i : over) order.push_back(static_cast<int>(i));
  rows.push_back(count);
  const array sorted = sort(reshape(transpose(x, order, s), rows, s), -1, s);
  const auto at = [&](std::int64_t place) {
    Shape start(rows.size(), 0), stop = rows;
    start.back() = place;
    stop.back() = place + 1;
    return slice(sorted, start, stop, {}, s);
  };
  array middle = at(count / 2);
  if (count % 2 == 0) middle = multiply(add(middle, at(count / 2 - 1), s), detail::constant_like(x, 0.5), s);
  // NaN is sorted to the end, so the last element tells whether there is one.
  if (detail::is_inexact(a.dtype())) middle = where(isnan(at(count - 1), s), at(count - 1), middle, s);
  return reshape(middle, detail::reduced_shape(a.shape(), over, keepdims), s);
}

}  // namespace sdx::array
