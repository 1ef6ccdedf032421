// Sums, products and extremes over axes. ONNX ReduceSum-13, ReduceMean-18, ReduceMax-20, ReduceMin-20, ReduceProd-18.

#include <sdx/array.hpp>

#include "array/array_op.h"
#include "array/ops/elements.h"
#include "array/ops/reductions.h"
#include "kernels/cpu/order/reduce.h"

namespace sdx::array {
namespace detail {
using cpu::ReduceFn;
using cpu::result_type_of;

Shape reduced_shape(const Shape& shape, const std::vector<std::int64_t>& over, bool keepdims) {
  Shape out;
  for (std::size_t i = 0, next = 0; i < shape.size(); ++i) {
    const bool gone = next < over.size() && over[next] == static_cast<std::int64_t>(i);
    if (gone) ++next;
    if (!gone || keepdims) out.push_back(gone ? 1 : shape[i]);
  }
  return out;
}

cpu::Lanes lanes_of(const Shape& shape, std::int64_t first, std::int64_t last) {
  cpu::Lanes e;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const auto axis = static_cast<std::int64_t>(i);
    (axis < first ? e.outer : axis <= last ? e.count : e.inner) *= shape[i];
  }
  return e;
}

namespace {

// params.ints holds keepdims, then the axes, sorted.
std::vector<std::int64_t> axes_of_params(const Params& p) { return {p.ints.begin() + 1, p.ints.end()}; }

// Reduces one group of neighbouring axes after the other, the last group first.
void run_reduce(ops::OpContext& c) {
  const auto fn = static_cast<ReduceFn>(c.attrs().get_int("function"));
  const std::vector<std::int64_t> axes = c.attrs().get_ints("axes");
  const Tensor& x = c.input(0);
  Tensor& y = result_tensor(c);
  Tensor from = x;
  Shape shape = x.shape();
  for (std::size_t last = axes.size(); last > 0;) {
    std::size_t first = last - 1;
    while (first > 0 && axes[first - 1] + 1 == axes[first]) --first;
    const cpu::Lanes e = lanes_of(shape, axes[first], axes[last - 1]);
    for (std::size_t k = first; k < last; ++k) shape[static_cast<std::size_t>(axes[k])] = 1;
    const DataType type = result_type_of(fn, from.dtype());
    Tensor to = first == 0 ? y : Tensor(type, shape);
    reduce(fn, from.dtype(), from.data(), to.mutable_data(), e);
    from = std::move(to);
    last = first;
  }
}

const char* onnx_reduction(ReduceFn fn) {
  switch (fn) {
    case ReduceFn::sum: return "ReduceSum";
    case ReduceFn::prod: return "ReduceProd";
    case ReduceFn::max: return "ReduceMax";
    case ReduceFn::min: return "ReduceMin";
    case ReduceFn::mean: return "ReduceMean";
    default: return nullptr;
  }
}

template <ReduceFn kFn>
void emit_reduce(Emitter& e) {
  const std::vector<std::int64_t> axes = axes_of_params(e.params());
  const char* name = onnx_reduction(kFn);
  if (name != nullptr && e.dtype(0) == Dtype::float32 && element_count(e.shape(0)) > 0) {
    return e.result(e.op(name, {e.in(0), e.ints(axes)}, {{"keepdims", e.params().ints[0]}}));
  }
  e.results<run_reduce>("Reduce", {e.in(0)}, {{"function", static_cast<std::int64_t>(kFn)}, {"axes", axes}});
}

// Returns `result` (or its gradient) with extents of 1 where axes were reduced.
array kept(const array& result, const VjpCall& c) {
  Shape shape = c.inputs[0].shape();
  for (std::size_t i = 1; i < c.params.ints.size(); ++i) shape[static_cast<std::size_t>(c.params.ints[i])] = 1;
  return reshape(result, shape);
}

std::vector<array> sum_vjp(const VjpCall& c) {
  const array g = as_type(c.of_outputs[0], c.inputs[0].dtype());
  return {broadcast_to(kept(g, c), c.inputs[0].shape())};
}

// Returns a type that holds counts of elements: float16 ends at 65,504, and bfloat16 has 8 significant bits.
Dtype counting(Dtype type) { return is_half(type) ? Dtype::float32 : type; }

std::vector<array> mean_vjp(const VjpCall& c) {
  const array& x = c.inputs[0];
  const double count = static_cast<double>(x.size()) / static_cast<double>(std::max<std::int64_t>(1, c.outputs[0].size()));
  const array wide = as_type(c.of_outputs[0], counting(x.dtype()));
  const array g = as_type(divide(wide, constant_like(wide, count)), x.dtype());
  return {broadcast_to(kept(g, c), x.shape())};
}

// Elements that are equally large share the gradient.
std::vector<array> extreme_vjp(const VjpCall& c) {
  const array& x = c.inputs[0];
  const Dtype wide = counting(x.dtype());
  const std::vector<int> axes(c.params.ints.begin() + 1, c.params.ints.end());
  const array mask = astype(equal(x, kept(c.outputs[0], c)), wide);
  const array shared = divide(as_type(kept(c.of_outputs[0], c), wide), sum(mask, axes, true));
  return {as_type(multiply(mask, shared), x.dtype())};
}

// An element's slope is the product of all others: of those before it and those after it, along each axis in turn.
std::vector<array> prod_vjp(const VjpCall& c) {
  const array& x = c.inputs[0];
  const std::int64_t axis = c.params.ints[1];
  const auto along = static_cast<int>(axis);
  const array before = cumprod(x, along, false, false), after = cumprod(x, along, true, false);
  const array g = as_type(c.of_outputs[0], x.dtype());
  return {multiply(kept(g, c), conjugate(multiply(before, after)))};
}

template <ReduceFn kFn>
VmapResult vmap_of(const VmapCall& c);

template <ReduceFn kFn>
constexpr Kind reduction(const char* name, std::vector<array> (*vjp)(const VjpCall&)) {
  return Kind{.name = name, .emit = emit_reduce<kFn>, .vjp = vjp, .vmap = vmap_of<kFn>};
}

const Kind kSum = reduction<ReduceFn::sum>("sum", sum_vjp);
const Kind kProd = reduction<ReduceFn::prod>("prod", prod_vjp);
const Kind kMax = reduction<ReduceFn::max>("max", extreme_vjp);
const Kind kMin = reduction<ReduceFn::min>("min", extreme_vjp);
const Kind kAll = reduction<ReduceFn::all>("all", flat_vjp);
const Kind kAny = reduction<ReduceFn::any>("any", flat_vjp);
const Kind kMean = reduction<ReduceFn::mean>("mean", mean_vjp);

const Kind& kind_of(ReduceFn fn) {
  switch (fn) {
    case ReduceFn::sum: return kSum;
    case ReduceFn::prod: return kProd;
    case ReduceFn::max: return kMax;
    case ReduceFn::min: return kMin;
    case ReduceFn::all: return kAll;
    case ReduceFn::any: return kAny;
    default: return kMean;
  }
}

array reduced(const Kind& kind, const array& a, const std::vector<std::int64_t>& over, bool keepdims, Dtype type,
              const StreamOrDevice& s) {
  Params params;
  params.ints.reserve(over.size() + 1);
  params.ints.push_back(keepdims ? 1 : 0);
  params.ints.insert(params.ints.end(), over.begin(), over.end());
  return make(kind, type, reduced_shape(a.shape(), over, keepdims), {a}, std::move(params), s);
}

template <ReduceFn kFn>
VmapResult vmap_of(const VmapCall& c) {
  const array& a = c.inputs[0];
  const int batch = c.in_axes[0];
  std::vector<std::int64_t> over = axes_of_params(c.params);
  int out = batch;
  for (std::int64_t& axis : over) {
    if (axis >= batch) {
      ++axis;
    } else if (c.params.ints[0] == 0) {
      --out;
    }
  }
  return {{reduced(kind_of(kFn), a, over, c.params.ints[0] != 0, result_type_of(kFn, a.dtype()), {})}, {out}};
}

bool neighbours(const std::vector<std::int64_t>& axes) {
  return axes.back() - axes.front() + 1 == static_cast<std::int64_t>(axes.size());
}

array over_axes(const Kind& kind, const array& a, const Axes& axes, bool keepdims, Dtype type, const StreamOrDevice& s) {
  const std::vector<std::int64_t> over = axes_of(kind.name, axes.list(), a.shape().size());
  if (over.empty()) return as_type(a, type, s);
  // Axes that lie apart are reduced one after the other; results in between are not rounded to 16 bits.
  if (is_half(a.dtype()) && (&kind == &kSum || &kind == &kMean) && !neighbours(over)) {
    return as_type(reduced(kind, as_type(a, Dtype::float32, s), over, keepdims, Dtype::float32, s), type, s);
  }
  return reduced(kind, a, over, keepdims, type, s);
}

array extreme(const Kind& kind, const array& a, const Axes& axes, bool keepdims, const StreamOrDevice& s) {
  for (const std::int64_t axis : axes_of(kind.name, axes.list(), a.shape().size())) {
    if (a.shape()[static_cast<std::size_t>(axis)] == 0) refuse(kind.name, "axis {} of {} is empty", axis, to_string(a.shape()));
  }
  return over_axes(kind, a, axes, keepdims, a.dtype(), s);
}

}  // namespace

std::int64_t count_over(const array& a, const Axes& axes, const char* operation) {
  std::int64_t count = 1;
  for (const std::int64_t axis : axes_of(operation, axes.list(), a.shape().size()))
    count *= a.shape()[static_cast<std::size_t>(axis)];
  return count;
}

}  // namespace detail

array sum(const array& a, const Axes& axis, bool keepdims, StreamOrDevice s) {
  return detail::over_axes(detail::kSum, a, axis, keepdims, detail::result_type_of(detail::ReduceFn::sum, a.dtype()), s);
}

// Reduces one axis after the other, because the gradient needs running products along each. 16-bit floats are rounded once, at
// the end.
array prod(const array& a, const Axes& axis, bool keepdims, StreamOrDevice s) {
  if (is_half(a.dtype())) return astype(prod(astype(a, Dtype::float32, s), axis, keepdims, s), a.dtype(), s);
  const std::vector<std::int64_t> over = detail::axes_of("prod", axis.list(), a.shape().size());
  const Dtype type = detail::result_type_of(detail::ReduceFn::prod, a.dtype());
  array result = a;
  for (auto it = over.rbegin(); it != over.rend(); ++it) {
    result = detail::reduced(detail::kProd, result, {*it}, keepdims, type, s);
  }
  return detail::as_type(result, type, s);
}

array max(const array& a, const Axes& axis, bool keepdims, StreamOrDevice s) {
  return detail::extreme(detail::kMax, a, axis, keepdims, s);
}
array min(const array& a, const Axes& axis, bool keepdims, StreamOrDevice s) {
  return detail::extreme(detail::kMin, a, axis, keepdims, s);
}

array all(const array& a, const Axes& axis, bool keepdims, StreamOrDevice s) {
  return detail::over_axes(detail::kAll, detail::as_type(a, Dtype::boolean, s), axis, keepdims, Dtype::boolean, s);
}
array any(const array& a, const Axes& axis, bool keepdims, StreamOrDevice s) {
  return detail::over_axes(detail::kAny, detail::as_type(a, Dtype::boolean, s), axis, keepdims, Dtype::boolean, s);
}

array mean(const array& a, const Axes& axis, bool keepdims, StreamOrDevice s) {
  const Dtype type = detail::at_least_float(a.dtype());
  return detail::over_axes(detail::kMean, detail::as_type(a, type, s), axis, keepdims, type, s);
}

array var(const array& a, const Axes& axis, bool keepdims, int ddof, StreamOrDevice s) {
  // Squares of float16 overflow from 256 on.
  if (is_half(a.dtype())) return astype(var(astype(a, Dtype::float32, s), axis, keepdims, ddof, s), a.dtype(), s);
  const array x = detail::as_type(a, detail::at_least_float(a.dtype()), s);
  const array apart = subtract(x, mean(x, axis, true, s), s);
  const array squares = detail::is_complex(x.dtype()) ? real(multiply(apart, conjugate(apart, s), s), s) : square(apart, s);
  array result = mean(squares, axis, keepdims, s);
  if (ddof == 0) return result;
  const auto count = static_cast<double>(detail::count_over(a, axis, "var"));
  return multiply(result, detail::constant_like(result, count / std::max(0.0, count - ddof)), s);
}

array std(const array& a, const Axes& axis, bool keepdims, int ddof, StreamOrDevice s) {
  if (is_half(a.dtype())) return astype(std(astype(a, Dtype::float32, s), axis, keepdims, ddof, s), a.dtype(), s);
  return sqrt(var(a, axis, keepdims, ddof, s), s);
}

array count_nonzero(const array& a, const Axes& axis, bool keepdims, StreamOrDevice s) {
  return sum(detail::as_type(a, Dtype::boolean, s), axis, keepdims, s);
}

}  // namespace sdx::array
