// Softmax, and the logarithm of a sum of exponentials. ONNX Softmax-13, ReduceLogSumExp-18.

#include <limits>

#include <sdx/array.hpp>

#include "array/ops/elements.h"
#include "array/ops/reductions.h"

namespace sdx::array {
namespace detail {
namespace {

// params.ints holds the axis. Takes float32 and float64.
void emit_softmax(Emitter& e) { e.result(e.op("Softmax", {e.in(0)}, {{"axis", e.params().ints[0]}})); }

// The gradient is y (g - Σ g y), where y are the results.
std::vector<array> softmax_vjp(const VjpCall& c) {
  const array &y = c.outputs[0], &g = c.of_outputs[0];
  const array weighted = multiply(g, y);
  return {subtract(weighted, multiply(y, sum(weighted, static_cast<int>(c.params.ints[0]), true)))};
}

VmapResult vmap_softmax(const VmapCall& c) {
  const int batch = c.in_axes[0];
  const int axis = static_cast<int>(c.params.ints[0]);
  return {{softmax(c.inputs[0], axis >= batch ? axis + 1 : axis)}, {batch}};
}

const Kind kSoftmax{.name = "softmax", .emit = emit_softmax, .vjp = softmax_vjp, .vmap = vmap_softmax};

// Returns what is subtracted so that no exponential overflows; 0 in place of infinities, which would give NaN.
array shift(const array& a, const Axes& axis, const StreamOrDevice& s) {
  const array most = is_complex(a.dtype()) ? real(max(a, axis, true, s), s) : max(a, axis, true, s);
  return stop_gradient(where(isfinite(most, s), most, constant_like(most, 0), s), s);
}

}  // namespace
}  // namespace detail

array softmax(const array& a, const Axes& axis, bool, StreamOrDevice s) {
  const Dtype type = detail::at_least_float(a.dtype());
  const std::vector<std::int64_t> over = detail::axes_of("softmax", axis.list(), a.shape().size());
  if (a.size() == 0 || over.empty())
    return a.size() == 0 ? detail::as_type(a, type, s) : ones_like(detail::as_type(a, type, s), {}, s);
  if (!detail::is_complex(type) && over.size() == 1) {
    const array x = detail::as_type(a, type == Dtype::float64 ? type : Dtype::float32, s);
    return detail::as_type(detail::make(detail::kSoftmax, x.dtype(), x.shape(), {x}, detail::params_of({over[0]}), s), type, s);
  }
  const bool half = type == Dtype::float16 || type == Dtype::bfloat16;
  const array x = detail::as_type(a, half ? Dtype::float32 : type, s);
  const array e = exp(subtract(x, stop_gradient(max(x, axis, true, s), s), s), s);
  return detail::as_type(divide(e, sum(e, axis, true, s), s), type, s);
}

// The sum of no exponentials is 0, its logarithm -infinity. 16-bit floats are rounded once, at the end: the sum of 65,520 equal
// numbers is beyond float16.
array logsumexp(const array& a, const Axes& axis, bool keepdims, StreamOrDevice s) {
  if (is_half(a.dtype())) return astype(logsumexp(astype(a, Dtype::float32, s), axis, keepdims, s), a.dtype(), s);
  const array x = detail::as_type(a, detail::at_least_float(a.dtype()), s);
  const Shape shape = detail::reduced_shape(x.shape(), detail::axes_of("logsumexp", axis.list(), x.shape().size()), keepdims);
  if (x.size() == 0) return broadcast_to(detail::constant_like(x, -std::numeric_limits<double>::infinity()), shape, s);
  const array by = detail::shift(x, axis, s);
  return reshape(add(log(sum(exp(subtract(x, by, s), s), axis, true, s), s), by, s), shape, s);
}

}  // namespace sdx::array
