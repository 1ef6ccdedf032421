#include "ops/gradients/fused.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "ops/gradients/windows.h"
#include "ops/math/signatures.h"
#include "ops/norm/signatures.h"
#include "ops/reduce/signatures.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/signatures.h"
#include "ops/training/ort/signatures.h"
#include "ops/training/signatures.h"

namespace sdx::ops {
namespace {

Attributes list(EmittedAttributes attributes) {
  Attributes out;
  for (const auto& [name, value] : attributes) out.set(name, value);
  return out;
}

std::vector<Expr> ms(GradientContext& c, const char* op, const std::vector<Expr>& inputs, std::size_t outputs,
                     Attributes attributes = {}) {
  return c.emit_foreign("com.microsoft", op, 1, inputs, outputs, std::move(attributes));
}

Expr ms1(GradientContext& c, const char* op, const std::vector<Expr>& inputs, EmittedAttributes attributes = {}) {
  return ms(c, op, inputs, 1, list(attributes))[0];
}

// Somebody differentiates by an output behind the first.
bool other_outputs(GradientContext& c) {
  for (std::size_t i = 1; i < c.node().outputs.size(); ++i) {
    if (c.dy(i)) return true;
  }
  return !c.dy();
}

std::optional<std::int64_t> extent(const SymShape& s, std::size_t i) {
  return s[i].is_const() ? std::optional(s[i].value()) : std::nullopt;
}

// --- activations --------------------------------------------------------------------------------------------------------

// Uses the result if it says as much as the input, so that one of the two need not be kept.
bool relu(GradientContext& c) {
  c.set(0, ms1(c, "ReluGrad", {c.dy(), c.out(0)}));
  return true;
}
bool sigmoid(GradientContext& c) {
  c.set(0, ms1(c, "SigmoidGrad", {c.dy(), c.out(0)}));
  return true;
}
bool tanh(GradientContext& c) {
  c.set(0, ms1(c, "TanhGrad", {c.dy(), c.out(0)}));
  return true;
}

// A slope below 0 would leave the result's sign without meaning.
bool leaky_relu(GradientContext& c) {
  const float alpha = parse<ActivationAttrs>(c).alpha;
  if (!(alpha >= 0)) return false;
  c.set(0, ms1(c, "LeakyReluGrad", {c.dy(), c.out(0)}, {{"alpha", alpha}}));
  return true;
}

bool gelu(GradientContext& c) {
  c.set(0, ms1(c, parse<GeluAttrs>(c).tanh() ? "FastGeluGrad" : "GeluGrad", {c.dy(), c.in(0)}));
  return true;
}
bool gelu_ms(GradientContext& c) {
  c.set(0, ms1(c, "GeluGrad", {c.dy(), c.in(0)}));
  return true;
}
bool fast_gelu(GradientContext& c) {
  if (c.has_input(1)) return false;
  c.set(0, ms1(c, "FastGeluGrad", {c.dy(), c.in(0)}));
  return true;
}
bool quick_gelu(GradientContext& c) {
  c.set(0, ms1(c, "QuickGeluGrad", {c.dy(), c.in(0)}, {{"alpha", parse<ActivationAttrs>(c).alpha}}));
  return true;
}

bool dropout(GradientContext& c) {
  if (c.version() < 12 || !c.has_input(2) || c.dy(1)) return false;
  c.set(0, ms1(c, "DropoutGrad", {c.dy(), c.out(1), c.in(1), c.in(2)}));
  return true;
}

template <bool log>
bool softmax(GradientContext& c) {
  const auto attr = parse<SoftmaxAttrs>(c);
  const char* names[] = {"SoftmaxGrad_13", "SoftmaxGrad", "LogSoftmaxGrad_13", "LogSoftmaxGrad"};
  const char* name = names[(log ? 2 : 0) + (attr.flattened ? 1 : 0)];
  c.set(0, ms1(c, name, {c.dy(), c.out(0)}, {{"axis", attr.axis}}));
  return true;
}

// --- losses, normalisation ----------------------------------------------------------------------------------------------

bool cross_entropy(GradientContext& c) {
  if (other_outputs(c) || c.wants(2)) return false;
  const auto attr = parse<LossAttrs>(c);
  Attributes attributes = list({{"reduction", std::string(attr.reduction)}});
  if (attr.ignore_index) attributes.set("ignore_index", *attr.ignore_index);
  std::vector<Expr> inputs{c.dy(), c.out(1), c.in(1)};
  if (c.has_input(2)) inputs.push_back(c.in(2));
  c.set(0, ms(c, "SoftmaxCrossEntropyLossGrad", inputs, 1, std::move(attributes))[0]);
  return true;
}

// Scale, and bias if there is one, must have one element for each normalised one; ONNX Runtime's kernel needs two or more of
// these.
bool normalised_extents(GradientContext& c) {
  const SymShape *x = c.shape(c.in(0)), *scale = c.shape(c.in(1));
  if (x == nullptr || scale == nullptr || !all_const(*scale)) return false;
  const std::int64_t axis = normalize_axis(parse<LayerNormAttrs>(c).axis, x->size());
  const SymShape inner(x->begin() + axis, x->end());
  if (*scale != inner || to_shape(inner).empty() || element_count(to_shape(inner)) < 2) return false;
  return !c.has_input(2) || (c.shape(c.in(2)) != nullptr && *c.shape(c.in(2)) == inner);
}

bool layer_norm(GradientContext& c) {
  if (other_outputs(c) || parse<LayerNormAttrs>(c).stash_type != 1 || !normalised_extents(c)) return false;
  const auto results = ms(c, "LayerNormalizationGrad", {c.dy(), c.in(0), c.in(1), c.out(1), c.out(2)}, 3,
                          list({{"axis", parse<LayerNormAttrs>(c).axis}}));
  for (std::size_t i = 0; i < 3; ++i) c.set(i, results[i]);
  return true;
}

bool simplified_layer_norm(GradientContext& c) {
  if (other_outputs(c) || parse<LayerNormAttrs>(c).stash_type != 1 || !normalised_extents(c)) return false;
  const auto results = ms(c, "SimplifiedLayerNormalizationGrad", {c.dy(), c.in(0), c.in(1), c.out(1)}, 2,
                          list({{"axis", parse<LayerNormAttrs>(c).axis}}));
  for (std::size_t i = 0; i < 2; ++i) c.set(i, results[i]);
  return true;
}

// The statistics of the batch are among the node's results.
bool batch_norm_internal(GradientContext& c) {
  const auto attr = parse<BatchNormInternalAttrs>(c);
  if (other_outputs(c) || !attr.training_mode) return false;
  const auto results =
      ms(c, "BatchNormalizationGrad", {c.dy(), c.in(0), c.in(1), c.out(3), c.out(4)}, 3, list({{"epsilon", attr.epsilon}}));
  for (std::size_t i = 0; i < 3; ++i) c.set(i, results[i]);
  return true;
}

// --- windows ------------------------------------------------------------------------------------------------------------

// ONNX Runtime's kernel does not heed auto_pad, and writes past the end of the gradient for groups in other than two dimensions.
bool conv(GradientContext& c) {
  const SymShape *x = c.shape(c.in(0)), *w = c.shape(c.in(1));
  const std::int64_t group = group_of(c.attrs());
  if (x == nullptr || w == nullptr || x->size() < 3 || (x->size() != 4 && group != 1)) return false;
  std::vector<std::int64_t> kernel;
  for (std::size_t i = 2; i < w->size(); ++i) {
    if (!(*w)[i].is_const()) return false;
    kernel.push_back((*w)[i].value());
  }
  const Windows windows = windows_of(c, c.in(0), c.in(1));
  Attributes attributes = list({{"group", group}, {"kernel_shape", kernel}, {"pads", windows.pads}});
  attributes.set("dilations", windows.dilations);
  attributes.set("strides", windows.strides);
  const std::size_t last = c.wants(2) ? 3 : c.wants(1) ? 2 : 1;
  std::vector<bool> present;
  for (std::size_t i = 0; i < last; ++i) present.push_back(c.wants(i));
  const auto results =
      c.emit_foreign("com.microsoft", "ConvGrad", 1, {c.dy(), c.in(0), c.in(1)}, last, std::move(attributes), present);
  for (std::size_t i = 0; i < last; ++i) c.set(i, results[i]);
  return true;
}

// ONNX Runtime takes the result's extents from the file's annotation: all but the batch must be numbers.
bool max_pool(GradientContext& c) {
  if (c.version() < 8 || other_outputs(c) || parse<PoolAttrs>(c).storage_order) return false;
  const SymShape* x = c.shape(c.in(0));
  if (x == nullptr || x->size() < 3) return false;
  std::vector<std::int64_t> shape;
  for (std::size_t i = 0; i < x->size(); ++i) {
    if (i > 0 && !(*x)[i].is_const()) return false;
    shape.push_back(extent(*x, i).value_or(0));
  }
  Attributes attributes = c.attrs();
  attributes.set("input_shape", shape);
  c.set(0, c.emit_foreign("", "MaxPoolGrad", 9, {c.dy(), c.out(1)}, 1, std::move(attributes))[0]);
  return true;
}

// --- taking elements ----------------------------------------------------------------------------------------------------

Expr shape_input(GradientContext& c) {
  const SymShape* s = c.shape(c.in(0));
  return s != nullptr && all_const(*s) ? c.ints(to_shape(*s)) : c.shape_of(c.in(0));
}

bool gather(GradientContext& c) {
  const std::int64_t axis = parse<GatherAttrs>(c).axis;
  c.set(0, ms1(c, "GatherGrad", {shape_input(c), c.in(1), c.dy()}, {{"axis", axis}}));
  return true;
}
bool gather_elements(GradientContext& c) {
  const std::int64_t axis = parse<GatherAttrs>(c).axis;
  c.set(0, ms1(c, "GatherElementsGrad", {c.dy(), shape_input(c), c.in(1)}, {{"axis", axis}}));
  return true;
}
bool gather_nd(GradientContext& c) {
  const std::int64_t batch = parse<GatherNdAttrs>(c).batch_dims;
  c.set(0, ms1(c, "GatherNDGrad", {shape_input(c), c.in(1), c.dy()}, {{"batch_dims", batch}}));
  return true;
}

bool slice(GradientContext& c) {
  if (c.version() < 10) return false;
  std::vector<Expr> inputs{c.dy(), shape_input(c)};
  for (std::size_t i = 1; i < c.num_inputs(); ++i) inputs.push_back(c.in(i));
  c.set(0, ms1(c, "SliceGrad", inputs));
  return true;
}

// --- products -----------------------------------------------------------------------------------------------------------

Expr product(GradientContext& c, Expr a, bool trans_a, Expr b, bool trans_b) {
  return ms1(c, "FusedMatMul", {a, b}, {{"alpha", 1.0F}, {"transA", std::int64_t{trans_a}}, {"transB", std::int64_t{trans_b}}});
}

// [..., K] as [rows, K].
Expr as_rows(GradientContext& c, Expr e, std::int64_t length) { return c.emit("Reshape", {e, c.ints({-1, length})}); }

// Whether two shapes agree apart from the last two axes.
bool same_stack(const SymShape& a, const SymShape& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end() - 2, b.begin());
}

// Stacks of matrices that go in step, and stacks by one matrix.
bool matmul(GradientContext& c) {
  const SymShape *a = c.shape(c.in(0)), *b = c.shape(c.in(1)), *y = c.shape(c.out(0));
  if (a == nullptr || b == nullptr || y == nullptr || a->size() < 2 || b->size() < 2) return false;
  if (a->size() == 2 && b->size() == 2) return false;  // Gemm does
  const Expr g = c.dy();
  if (same_stack(*a, *b) && same_stack(*a, *y)) {
    if (c.wants(0)) c.set(0, product(c, g, false, c.in(1), true));
    if (c.wants(1)) c.set(1, product(c, c.in(0), true, g, false));
    return true;
  }
  const auto depth = extent(*b, 0), width = extent(*b, 1);
  if (b->size() != 2 || !depth || !width || *depth == 0 || *width == 0) return false;
  if (c.wants(0)) c.set(0, product(c, g, false, c.in(1), true));
  if (!c.wants(1)) return true;
  c.set(1, c.emit("Gemm", {as_rows(c, c.in(0), *depth), as_rows(c, g, *width)}, {{"transA", std::int64_t{1}}}));
  return true;
}

using FusedFn = bool (*)(GradientContext&);

const std::map<std::string_view, FusedFn>& functions(bool microsoft) {
  static const std::map<std::string_view, FusedFn> onnx{
      {"Relu", relu},
      {"LeakyRelu", leaky_relu},
      {"Sigmoid", sigmoid},
      {"Tanh", tanh},
      {"Gelu", gelu},
      {"Dropout", dropout},
      {"Softmax", softmax<false>},
      {"LogSoftmax", softmax<true>},
      {"SoftmaxCrossEntropyLoss", cross_entropy},
      {"LayerNormalization", layer_norm},
      {"SimplifiedLayerNormalization", simplified_layer_norm},
      {"Conv", conv},
      {"MaxPool", max_pool},
      {"Gather", gather},
      {"GatherElements", gather_elements},
      {"GatherND", gather_nd},
      {"Slice", slice},
      {"MatMul", matmul},
  };
  static const std::map<std::string_view, FusedFn> ms_functions{
      {"Gelu", gelu_ms},
      {"FastGelu", fast_gelu},
      {"QuickGelu", quick_gelu},
      {"BatchNormInternal", batch_norm_internal},
      {"LayerNormalization", layer_norm},
      {"SimplifiedLayerNormalization", simplified_layer_norm},
  };
  return microsoft ? ms_functions : onnx;
}

}  // namespace

bool emit_fused(GradientContext& c) {
  const std::string& domain = c.node().domain;
  if (!domain.empty() && domain != "ai.onnx" && domain != "com.microsoft") return false;
  const auto& table = functions(domain == "com.microsoft");
  const auto found = table.find(c.node().op_type);
  if (found == table.end() || !c.dy() || c.dtype(c.in(0)) != DataType::float32) return false;
  return found->second(c);
}

}  // namespace sdx::ops
