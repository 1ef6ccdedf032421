// Normalisations over the last axis. ONNX LayerNormalization-17, com.microsoft SimplifiedLayerNormalization.

#include <sdx/array.hpp>

#include "array/emitter.h"
#include "array/kernels/norm.h"
#include "array/ops/batch.h"
#include "array/ops/common.h"

namespace sdx::array {
namespace detail {
namespace {

// Inputs: x, weight and bias where there are. params.ints: whether without mean, with weight, with bias; reals: epsilon.
struct NormParams {
  bool rms, weight, bias;
  double eps;
};

NormParams params_of(const Params& p) { return {p.ints[0] != 0, p.ints[1] != 0, p.ints[2] != 0, p.reals[0]}; }

void emit_norm(Emitter& e) {
  const NormParams p = params_of(e.params());
  std::vector<ValueId> inputs{e.in(0)};
  if (p.weight) {
    inputs.push_back(e.in(1));
  } else {
    Tensor one(e.dtype(0), {e.shape(0).back()});
    const Tensor value = array(1, e.dtype(0)).tensor();
    const auto* from = static_cast<const std::byte*>(value.data());
    auto* to = static_cast<std::byte*>(one.mutable_data());
    for (std::size_t i = 0; i < one.bytes(); ++i) to[i] = from[i % value.bytes()];
    inputs.push_back(e.constant(std::move(one)));
  }
  if (p.bias) inputs.push_back(e.in(e.num_inputs() - 1));
  EmittedAttributes attributes{{"axis", std::int64_t{-1}}, {"epsilon", static_cast<float>(p.eps)}};
  if (p.rms) {
    e.result(e.foreign("com.microsoft", "SimplifiedLayerNormalization", std::move(inputs), 1, std::move(attributes))[0]);
  } else {
    e.result(e.op("LayerNormalization", std::move(inputs), std::move(attributes)));
  }
}

array over_rows(const array& a) {
  const Shape last{a.shape().back()};
  return sum_to(a, last);
}

// Gradients of x, weight and bias by single operations, whose derivatives are known. Inputs: x, the gradient, the weight if any.
std::vector<array> gradients_by_parts(const std::vector<array>& in, const NormParams& p) {
  const array &x = in[0], &g = in[1];
  const array centred = p.rms ? x : subtract(x, mean(x, -1, true));
  const array inverse = rsqrt(add(mean(square(centred), -1, true), array(p.eps, x.dtype())));
  const array normal = multiply(centred, inverse);
  const array weighed = p.weight ? multiply(g, in[2]) : g;
  array d = subtract(weighed, multiply(normal, mean(multiply(weighed, normal), -1, true)));
  if (!p.rms) d = subtract(d, mean(weighed, -1, true));
  return {multiply(d, inverse), over_rows(multiply(g, normal)), over_rows(g)};
}

// Inputs: x, the gradient, the weight if any; results: the gradients of x, weight and bias.
void emit_norm_gradient(Emitter& e) {
  const NormParams p = params_of(e.params());
  e.results(norm_gradient_op(), e.inputs(), {{"rms", std::int64_t{p.rms}}, {"epsilon", Tensor::scalar<double>(p.eps)}});
}

std::vector<array> norm_gradient_vjp(const VjpCall& c) {
  const NormParams p = params_of(c.params);
  const auto by_parts = [&](const std::vector<array>& in) { return gradients_by_parts(in, p); };
  const std::vector<array> all = vjp(by_parts, c.inputs, c.of_outputs).second;
  std::vector<array> out;
  for (const std::size_t i : c.wanted) out.push_back(all[i]);
  return out;
}

VmapResult norm_gradient_vmap(const VmapCall& c) {
  const NormParams p = params_of(c.params);
  const auto each = [&](const std::vector<array>& in) { return gradients_by_parts(in, p); };
  std::vector<array> inputs;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) inputs.push_back(batched(c, i));
  return {vmap(each)(inputs), {0, 0, 0}};
}

const Kind kNormGradient{.name = "layer_norm", .emit = emit_norm_gradient, .vjp = norm_gradient_vjp, .vmap = norm_gradient_vmap};

std::vector<array> norm_vjp(const VjpCall& c) {
  const NormParams p = params_of(c.params);
  std::vector<array> inputs{c.inputs[0], c.of_outputs[0]};
  if (p.weight) inputs.push_back(c.inputs[1]);
  const array& x = c.inputs[0];
  const Shape last{x.shape().back()};
  Params params = c.params;
  const std::vector<array> all =
      make_many(kNormGradient, {{x.dtype(), x.shape()}, {x.dtype(), last}, {x.dtype(), last}}, inputs, std::move(params));
  std::vector<array> out;
  for (const std::size_t i : c.wanted) out.push_back(all[i == 0 ? 0 : i == 1 && p.weight ? 1 : 2]);
  return out;
}

array norm(const array& x, const std::optional<array>& weight, const std::optional<array>& bias, double eps, bool rms,
           const StreamOrDevice& s = {});

VmapResult norm_vmap(const VmapCall& c) {
  const NormParams p = params_of(c.params);
  array out = norm(batched(c, 0), std::nullopt, std::nullopt, p.eps, p.rms);
  // A vector for each element of the batch, in line with the last axis.
  const auto in_line = [&](std::size_t i) {
    if (!is_batched(c, i)) return c.inputs[i];
    Shape shape(out.shape().size(), 1);
    shape.front() = c.batch;
    shape.back() = out.shape().back();
    return reshape(batch_first(c, i), shape);
  };
  if (p.weight) out = multiply(out, in_line(1));
  if (p.bias) out = add(out, in_line(c.inputs.size() - 1));
  return batch_result(out);
}

const Kind kNorm{.name = "layer_norm", .emit = emit_norm, .vjp = norm_vjp, .vmap = norm_vmap};

array norm(const array& x, const std::optional<array>& weight, const std::optional<array>& bias, double eps, bool rms,
           const StreamOrDevice& s) {
  Params p;
  p.ints = {rms, weight.has_value(), bias.has_value()};
  p.reals = {eps};
  std::vector<array> inputs{x};
  if (weight) inputs.push_back(*weight);
  if (bias) inputs.push_back(*bias);
  return make(kNorm, x.dtype(), x.shape(), std::move(inputs), std::move(p), s);
}

array checked_norm(const char* operation, const array& x, const std::optional<array>& weight, const std::optional<array>& bias,
                   float eps, bool rms, const StreamOrDevice& s) {
  if (x.ndim() == 0) refuse(operation, "a scalar; expected at least one axis");
  Dtype type = x.dtype();
  for (const auto* v : {&weight, &bias}) {
    if (!*v) continue;
    if ((*v)->shape() != Shape{x.shape().back()}) {
      refuse(operation, "weight or bias of shape {} for an array of shape {}", to_string((*v)->shape()), to_string(x.shape()));
    }
    type = promote(type, (*v)->dtype());
  }
  if (!is_floating(type)) refuse(operation, "an array of type {}; expected floats", name(type));
  const Dtype inner = type == Dtype::float64 ? type : Dtype::float32;
  const auto as = [&](const std::optional<array>& v) { return v ? std::optional(as_type(*v, inner, s)) : std::nullopt; };
  return as_type(norm(as_type(x, inner, s), as(weight), as(bias), static_cast<double>(eps), rms, s), type, s);
}

}  // namespace
}  // namespace detail

array fast::layer_norm(const array& x, const std::optional<array>& weight, const std::optional<array>& bias, float eps,
                       StreamOrDevice s) {
  return detail::checked_norm("layer_norm", x, weight, bias, eps, false, s);
}

array fast::rms_norm(const array& x, const std::optional<array>& weight, float eps, StreamOrDevice s) {
  return detail::checked_norm("rms_norm", x, weight, std::nullopt, eps, true, s);
}

array fast::cross_entropy(const array& logits, const array& targets, StreamOrDevice s) {
  const array wide = detail::as_type(logits, logits.dtype() == Dtype::float64 ? Dtype::float64 : Dtype::float32, s);
  const array picked = squeeze(take_along_axis(wide, expand_dims(targets, -1, s), -1, s), -1, s);
  return subtract(logsumexp(wide, -1, false, s), picked, s);
}

}  // namespace sdx::array
