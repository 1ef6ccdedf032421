// Selection between elements, and operations that leave elements alone. ONNX Where-16, Identity-21.

#include <sdx/array.hpp>

#include <limits>

#include "array/array_op.h"
#include "array/ops/elements.h"
#include "kernels/cpu/elements/tensors.h"

namespace sdx::array {
namespace detail {
namespace {

void run_select(ops::OpContext& c) { cpu::select(c.input(0), c.input(1), c.input(2), result_tensor(c)); }

void emit_where(Emitter& e) {
  if (is_complex(e.out_dtype())) return e.results<run_select>("Select", {e.in(0), e.in(1), e.in(2)});
  e.result(e.op("Where", {e.in(0), e.in(1), e.in(2)}));
}

std::vector<array> where_vjp(const VjpCall& c) {
  const array &condition = c.inputs[0], &g = c.of_outputs[0];
  return gradients(c, [&](std::size_t i) {
    if (i == 0) return zeros_like(condition);
    const array zero = constant_like(g, 0);
    return i == 1 ? where(condition, g, zero) : where(condition, zero, g);
  });
}

void emit_identity(Emitter& e) { e.result(e.op("Identity", {e.in(0)})); }
std::vector<array> blocked_vjp(const VjpCall& c) { return {zeros_like(c.inputs[0])}; }

void emit_depends(Emitter& e) {
  for (std::size_t i = 0; i < e.num_results(); ++i) e.result(e.op("Identity", {e.in(i)}), i);
}

std::vector<array> depends_vjp(const VjpCall& c) {
  return gradients(c, [&](std::size_t i) { return i < c.of_outputs.size() ? c.of_outputs[i] : zeros_like(c.inputs[i]); });
}

const Kind kWhere{.name = "where", .emit = emit_where, .vjp = where_vjp, .elementwise = true};
const Kind kStopGradient{.name = "stop_gradient", .emit = emit_identity, .vjp = blocked_vjp, .elementwise = true};
const Kind kDepends{.name = "depends", .emit = emit_depends, .vjp = depends_vjp};

double largest(Dtype type) {
  switch (type) {
    case Dtype::float16: return 65504;
    case Dtype::bfloat16: return 0x1.FEp127;
    case Dtype::float64:
    case Dtype::complex128: return std::numeric_limits<double>::max();
    default: return std::numeric_limits<float>::max();
  }
}

}  // namespace

Dtype weak_type(Dtype array, ScalarKind number) {
  switch (number) {
    case ScalarKind::boolean: return Dtype::boolean;
    case ScalarKind::integer: return array == Dtype::boolean ? Dtype::int32 : array;
    case ScalarKind::real: break;
  }
  return is_inexact(array) ? array : Dtype::float32;
}

}  // namespace detail

array where(const array& condition, const array& x, const array& y, StreamOrDevice s) {
  const Dtype type = detail::promote(x.dtype(), y.dtype());
  Shape shape = detail::broadcast("where", condition.shape(), detail::broadcast("where", x.shape(), y.shape()));
  return detail::make(detail::kWhere, type, std::move(shape),
                      {detail::as_type(condition, Dtype::boolean, s), detail::as_type(x, type, s), detail::as_type(y, type, s)},
                      {}, s);
}

array clip(const array& a, const std::optional<array>& a_min, const std::optional<array>& a_max, StreamOrDevice s) {
  if (!a_min && !a_max) detail::refuse("clip", "needs a_min or a_max");
  array result = a;
  if (a_min) result = maximum(result, *a_min, s);
  if (a_max) result = minimum(result, *a_max, s);
  return result;
}

array nan_to_num(const array& a, double nan, std::optional<double> posinf, std::optional<double> neginf, StreamOrDevice s) {
  const Dtype type = a.dtype();
  if (!detail::is_inexact(type)) return a;
  if (detail::is_complex(type)) detail::refuse("nan_to_num", "is not defined for {}", name(type));
  const double most = detail::largest(type);
  array out = where(isnan(a, s), array(nan, type), a, s);
  out = where(isposinf(a, s), array(posinf.value_or(most), type), out, s);
  return where(isneginf(a, s), array(neginf.value_or(-most), type), out, s);
}

array stop_gradient(const array& a, StreamOrDevice s) { return detail::map(detail::kStopGradient, a, a.dtype(), s); }

std::vector<array> depends(const std::vector<array>& inputs, const std::vector<array>& dependencies) {
  if (inputs.empty()) return {};
  std::vector<array> all = inputs;
  all.insert(all.end(), dependencies.begin(), dependencies.end());
  std::vector<std::pair<Dtype, Shape>> results;
  for (const array& a : inputs) results.emplace_back(a.dtype(), a.shape());
  return detail::make_many(detail::kDepends, std::move(results), std::move(all));
}

}  // namespace sdx::array
