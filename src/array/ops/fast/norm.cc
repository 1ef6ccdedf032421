// Normalisations over the last axis. ONNX LayerNormalization-17, com.microsoft SimplifiedLayerNormalization and the
// gradients of both.

#include <sdx/array.hpp>

#include "array/emitter.h"
#include "array/ops/batch.h"
#include "array/ops/common.h"
#include "ops/tensor/movement.h"

namespace sdx::array {
namespace detail {
namespace {

// Inputs: x, then weight and bias if the operation has them. params.ints holds whether it leaves out the mean, has a weight, has
// a bias; params.reals holds epsilon.
struct NormParams {
  bool rms, weight, bias;
  double eps;
};

NormParams params_of(const Params& p) { return {p.ints[0] != 0, p.ints[1] != 0, p.ints[2] != 0, p.reals[0]}; }

// Returns input i, or ones if the operation has no weight.
ValueId weight_of(Emitter& e, const NormParams& p, std::size_t i) {
  if (p.weight) return e.in(i);
  Tensor one(e.dtype(0), {e.shape(0).back()});
  ops::fill_with(one, array(1, e.dtype(0)).tensor());
  return e.constant(std::move(one));
}

// Returns the result and, if `outputs` asks for them, the mean (not for RMS) and the inverse deviation of each row, both in the
// type of x.
std::vector<ValueId> emit_rows(Emitter& e, const NormParams& p, std::vector<ValueId> inputs, std::size_t outputs) {
  EmittedAttributes attributes{{"axis", std::int64_t{-1}}, {"epsilon", static_cast<float>(p.eps)}};
  if (outputs > 1 && e.dtype(0) == Dtype::float64) {
    attributes.emplace_back("stash_type", static_cast<std::int64_t>(Dtype::float64));
  }
  if (!p.rms) return e.op_many("LayerNormalization", std::move(inputs), outputs, std::move(attributes));
  return e.foreign("com.microsoft", "SimplifiedLayerNormalization", std::move(inputs), outputs, std::move(attributes));
}

void emit_norm(Emitter& e) {
  const NormParams p = params_of(e.params());
  std::vector<ValueId> inputs{e.in(0), weight_of(e, p, 1)};
  if (p.bias) inputs.push_back(e.in(e.num_inputs() - 1));
  e.result(emit_rows(e, p, std::move(inputs), 1)[0]);
}

array over_rows(const array& a) {
  const Shape last{a.shape().back()};
  return sum_to(a, last);
}

// Computes the gradients of x, weight and (not for RMS) bias by single operations, whose derivatives are known. Inputs: x, the
// gradient, the weight if any.
std::vector<array> gradients_by_parts(const std::vector<array>& in, const NormParams& p) {
  const array &x = in[0], &g = in[1];
  const array centred = p.rms ? x : subtract(x, mean(x, -1, true));
  const array inverse = rsqrt(add(mean(square(centred), -1, true), array(p.eps, x.dtype())));
  const array normal = multiply(centred, inverse);
  const array weighed = p.weight ? multiply(g, in[2]) : g;
  array d = subtract(weighed, multiply(normal, mean(multiply(weighed, normal), -1, true)));
  if (!p.rms) d = subtract(d, mean(weighed, -1, true));
  std::vector<array> all{multiply(d, inverse), over_rows(multiply(g, normal))};
  if (!p.rms) all.push_back(over_rows(g));
  return all;
}

// Emits the gradients. Inputs: x, the gradient, the weight if any; results as of gradients_by_parts().
void emit_norm_gradient(Emitter& e) {
  const NormParams p = params_of(e.params());
  const ValueId weight = weight_of(e, p, 2);
  const std::vector<ValueId> rows = emit_rows(e, p, {e.in(0), weight}, e.num_results());
  std::vector<ValueId> inputs{e.in(1), e.in(0), weight};
  inputs.insert(inputs.end(), rows.begin() + 1, rows.end());
  const char* name = p.rms ? "SimplifiedLayerNormalizationGrad" : "LayerNormalizationGrad";
  const auto made = e.foreign("com.microsoft", name, std::move(inputs), e.num_results(), {{"axis", std::int64_t{-1}}});
  for (std::size_t i = 0; i < made.size(); ++i) e.result(made[i], i);
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
  std::vector<array> all = vmap(each)(inputs);
  std::vector<int> axes(all.size(), 0);
  return {std::move(all), std::move(axes)};
}

const Kind kNormGradient{.name = "layer_norm", .emit = emit_norm_gradient, .vjp = norm_gradient_vjp, .vmap = norm_gradient_vmap};

std::vector<array> norm_vjp(const VjpCall& c) {
  const NormParams p = params_of(c.params);
  std::vector<array> inputs{c.inputs[0], c.of_outputs[0]};
  if (p.weight) inputs.push_back(c.inputs[1]);
  const array& x = c.inputs[0];
  std::vector<std::pair<Dtype, Shape>> types(p.rms ? 2 : 3, {x.dtype(), Shape{x.shape().back()}});
  types[0].second = x.shape();
  const std::vector<array> all = make_many(kNormGradient, std::move(types), inputs, c.params);
  std::vector<array> out;
  for (const std::size_t i : c.wanted) out.push_back(all[i == 0 ? 0 : i == 1 && p.weight ? 1 : 2]);
  return out;
}

array norm(const array& x, const std::optional<array>& weight, const std::optional<array>& bias, double eps, bool rms,
           const StreamOrDevice& s = {});

VmapResult norm_vmap(const VmapCall& c) {
  const NormParams p = params_of(c.params);
  array out = norm(batched(c, 0), std::nullopt, std::nullopt, p.eps, p.rms);
  // Shapes a vector for each element of the batch so that it stands in line with the last axis.
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
