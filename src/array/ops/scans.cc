// Running sums, products and extremes.

#include <sdx/array.hpp>

#include "array/array_op.h"
#include "array/ops/elements.h"
#include "array/ops/reductions.h"
#include "kernels/cpu/order/reduce.h"

namespace sdx::array {
namespace detail {

using cpu::ScanFn;
namespace {

void run_scan(ops::OpContext& c) {
  const Tensor& x = c.input(0);
  Tensor& y = result_tensor(c);
  const std::int64_t axis = c.attrs().get_int("axis");
  const cpu::Lanes e = lanes_of(x.shape(), axis, axis);
  scan(static_cast<ScanFn>(c.attrs().get_int("function")), x.dtype(), x.data(), y.mutable_data(), e,
       c.attrs().get_int("reverse") != 0, c.attrs().get_int("inclusive") != 0);
}

// params.ints holds axis, reverse, inclusive.
template <ScanFn kFn>
void emit_scan(Emitter& e) {
  const std::vector<std::int64_t>& p = e.params().ints;
  e.results<run_scan>("Scan", {e.in(0)},
                      {{"function", static_cast<std::int64_t>(kFn)}, {"axis", p[0]}, {"reverse", p[1]}, {"inclusive", p[2]}});
}

struct Along {
  int axis;
  bool reverse, inclusive;
};
Along along(const Params& p) { return {static_cast<int>(p.ints[0]), p.ints[1] != 0, p.ints[2] != 0}; }

std::vector<array> cumsum_vjp(const VjpCall& c) {
  const Along p = along(c.params);
  return {cumsum(c.of_outputs[0], p.axis, !p.reverse, p.inclusive)};
}

// Computes Σ_j g_j y_j / x_i over the j that x_i contributes to. At the first zero of a row, where this divides by 0, products
// leave out that zero; elements after it have no influence. Second derivatives are right where no element is 0.
std::vector<array> cumprod_vjp(const VjpCall& c) {
  const Along p = along(c.params);
  const Dtype type = c.inputs[0].dtype();
  // 16-bit floats use products in float32, since rounded ones might end at infinity or 0.
  const array x = as_type(c.inputs[0], is_half(type) ? Dtype::float32 : type), g = as_type(c.of_outputs[0], x.dtype());
  const array products = is_half(type) ? cumprod(x, p.axis, p.reverse, p.inclusive) : c.outputs[0];
  const array zero = constant_like(x, 0), one = constant_like(x, 1);
  const array is_zero = equal(x, zero);
  const array zeros_so_far = cumsum(astype(is_zero, Dtype::int32), p.axis, p.reverse, true);
  const array first = logical_and(is_zero, equal(zeros_so_far, array(1)));
  const auto gathered = [&](const array& of) { return cumsum(multiply(g, conjugate(of)), p.axis, !p.reverse, p.inclusive); };
  const array without = cumprod(where(first, one, x), p.axis, p.reverse, p.inclusive);
  const array plain = divide(gathered(products), conjugate(where(is_zero, one, x)));
  return {as_type(where(first, gathered(without), where(equal(zeros_so_far, array(0)), plain, zero)), type)};
}

// Computes Σ_j g_j exp(x_i - y_j) in float64 as exp(x_i - m) Σ_j g_j exp(m - y_j), where m is the largest y. Where m - y_j is
// beyond 700, the product of both is below the smallest float32.
std::vector<array> logcumsumexp_vjp(const VjpCall& c) {
  const Along p = along(c.params);
  const Dtype type = c.inputs[0].dtype();
  const Dtype wide = is_complex(type) ? Dtype::complex128 : Dtype::float64;
  const array x = as_type(c.inputs[0], wide), y = as_type(c.outputs[0], wide), g = as_type(c.of_outputs[0], wide);
  const array most = stop_gradient(max(real(y), p.axis, true));
  const array apart =
      where(less(subtract(most, real(y)), array(700.0, Dtype::float64)), subtract(most, y), constant_like(y, 700));
  const array gathered = cumsum(multiply(g, conjugate(exp(apart))), p.axis, !p.reverse, p.inclusive);
  return {as_type(multiply(conjugate(exp(subtract(x, most))), gathered), type)};
}

// The gradient of each result goes to the element that it equals, the last one of several; to none if there is no element before
// it.
template <bool kMax>
std::vector<array> cumulative_extreme_vjp(const VjpCall& c) {
  const Along p = along(c.params);
  const array &x = c.inputs[0], &g = c.of_outputs[0];
  const std::int64_t count = x.shape(p.axis);
  const array so_far = p.inclusive ? c.outputs[0] : kMax ? cummax(x, p.axis, p.reverse) : cummin(x, p.axis, p.reverse);
  Shape along_axis(x.shape().size(), 1);
  along_axis[static_cast<std::size_t>(p.axis)] = count;
  const array here = reshape(arange(0, static_cast<double>(count), 1, Dtype::int64), along_axis);
  const array none(p.reverse ? count : std::int64_t{-1});
  const array marked = where(equal(x, so_far), here, none);
  const array place = p.reverse ? cummin(marked, p.axis, true, p.inclusive) : cummax(marked, p.axis, false, p.inclusive);
  const array first(std::int64_t{0}), last(count - 1);
  const array found = logical_and(greater_equal(place, first), less_equal(place, last));
  const array to = stop_gradient(where(found, place, first));
  return {scatter_add_axis(zeros_like(x), to, where(found, g, constant_like(g, 0)), p.axis)};
}

template <ScanFn kFn>
VmapResult vmap_scan(const VmapCall& c);

const Kind kCumsum{.name = "cumsum", .emit = emit_scan<ScanFn::sum>, .vjp = cumsum_vjp, .vmap = vmap_scan<ScanFn::sum>};
const Kind kCumprod{.name = "cumprod", .emit = emit_scan<ScanFn::prod>, .vjp = cumprod_vjp, .vmap = vmap_scan<ScanFn::prod>};
const Kind kCummax{
    .name = "cummax", .emit = emit_scan<ScanFn::max>, .vjp = cumulative_extreme_vjp<true>, .vmap = vmap_scan<ScanFn::max>};
const Kind kCummin{
    .name = "cummin", .emit = emit_scan<ScanFn::min>, .vjp = cumulative_extreme_vjp<false>, .vmap = vmap_scan<ScanFn::min>};
const Kind kLogcumsumexp{
    .name = "logcumsumexp", .emit = emit_scan<ScanFn::logaddexp>, .vjp = logcumsumexp_vjp, .vmap = vmap_scan<ScanFn::logaddexp>};

array scanned(const Kind& kind, const array& a, int axis, bool reverse, bool inclusive, const StreamOrDevice& s) {
  return make(kind, a.dtype(), a.shape(), {a}, params_of({axis, reverse ? 1 : 0, inclusive ? 1 : 0}), s);
}

template <ScanFn kFn>
VmapResult vmap_scan(const VmapCall& c) {
  const Kind& kind = kFn == ScanFn::sum    ? kCumsum
                     : kFn == ScanFn::prod ? kCumprod
                     : kFn == ScanFn::max  ? kCummax
                     : kFn == ScanFn::min  ? kCummin
                                           : kLogcumsumexp;
  const Along p = along(c.params);
  const int batch = c.in_axes[0];
  return {{scanned(kind, c.inputs[0], p.axis >= batch ? p.axis + 1 : p.axis, p.reverse, p.inclusive, {})}, {batch}};
}

array scan_of(const Kind& kind, const array& a, std::optional<int> axis, bool reverse, bool inclusive, const StreamOrDevice& s) {
  const array x = axis ? a : reshape(a, {a.size()}, s);
  return scanned(kind, x, axis_of(kind.name, axis.value_or(0), x.shape().size()), reverse, inclusive, s);
}

}  // namespace
}  // namespace detail

array cumsum(const array& a, std::optional<int> axis, bool reverse, bool inclusive, std::optional<Dtype> dtype,
             StreamOrDevice s) {
  const array x = dtype ? detail::as_type(a, *dtype, s) : a.dtype() == Dtype::boolean ? astype(a, Dtype::int32, s) : a;
  return detail::scan_of(detail::kCumsum, x, axis, reverse, inclusive, s);
}

array cumprod(const array& a, std::optional<int> axis, bool reverse, bool inclusive, std::optional<Dtype> dtype,
              StreamOrDevice s) {
  return detail::scan_of(detail::kCumprod, dtype ? detail::as_type(a, *dtype, s) : a, axis, reverse, inclusive, s);
}

array cummax(const array& a, std::optional<int> axis, bool reverse, bool inclusive, StreamOrDevice s) {
  return detail::scan_of(detail::kCummax, a, axis, reverse, inclusive, s);
}

array cummin(const array& a, std::optional<int> axis, bool reverse, bool inclusive, StreamOrDevice s) {
  return detail::scan_of(detail::kCummin, a, axis, reverse, inclusive, s);
}

array logcumsumexp(const array& a, std::optional<int> axis, bool reverse, bool inclusive, StreamOrDevice s) {
  const array x = detail::as_type(a, detail::at_least_float(a.dtype()), s);
  return detail::scan_of(detail::kLogcumsumexp, x, axis, reverse, inclusive, s);
}

}  // namespace sdx::array
