// Gradients of com.microsoft's operators on elements, products and convolutions: fusions of operators of ai.onnx, as which they
// are written.

#include <algorithm>
#include <limits>
#include <numeric>

#include "ops/conv/signatures.h"
#include "ops/gradient.h"
#include "ops/math/fused_activation.h"
#include "ops/math/signatures.h"
#include "ops/matrix/signatures.h"
#include "ops/reduce/signatures.h"
#include "ops/tensor/signatures.h"

namespace sdx::ops {
namespace {

using Outputs = std::vector<Expr>;

template <Outputs (*formula)(GradientContext&)>
void by_formula(GradientContext& c) {
  c.through(formula);
}

Expr gelu(Expr x) { return call("Gelu", x); }
Expr gelu_by_tanh(Expr x) { return x.here().emit("Gelu", {x}, {{"approximate", std::string("tanh")}}); }
Expr scaled_silu(Expr x, double alpha) { return x * call("Sigmoid", alpha == 1 ? x : x * alpha); }
Expr with_bias(GradientContext& c, std::size_t i) { return c.has_input(i) ? c.in(0) + c.in(i) : c.in(0); }

double alpha_of(const GradientContext& c) { return static_cast<double>(parse<ActivationAttrs>(c).alpha); }

Outputs plain_gelu(GradientContext& c) { return {gelu(c.in(0))}; }
Outputs bias_gelu(GradientContext& c) { return {gelu(with_bias(c, 1))}; }
Outputs fast_gelu(GradientContext& c) { return {gelu_by_tanh(with_bias(c, 1))}; }
Outputs quick_gelu(GradientContext& c) { return {scaled_silu(c.in(0), alpha_of(c))}; }
Outputs swiglu(GradientContext& c) { return {scaled_silu(c.in(0), alpha_of(c)) * c.in(1)}; }
Outputs bias_add(GradientContext& c) { return {c.in(0) + c.in(1) + c.in(2)}; }

Outputs bias_split_gelu(GradientContext& c) {
  const Outputs parts =
      c.emit_many("Split", {c.in(0) + c.in(1)}, 2, {{"axis", std::int64_t{-1}}, {"num_outputs", std::int64_t{2}}});
  return {parts[0] * gelu(parts[1])};
}

// The axes from `axis` on count as one.
Outputs bias_softmax(GradientContext& c) {
  std::int64_t axis = parse<BiasSoftmaxAttrs>(c).axis;
  if (axis < 0) axis += c.rank(c.in(0));
  const Expr scores = c.in(0) + c.in(1);
  const Expr rows = c.emit("Concat", {c.extents(scores, 0, axis), c.ints({-1})}, {{"axis", std::int64_t{0}}});
  const Expr y = c.emit("Softmax", {c.emit("Reshape", {scores, rows})}, {{"axis", std::int64_t{-1}}});
  return {c.reshape(y, c.shape_of(scores))};
}

Outputs bias_dropout(GradientContext& c) {
  Outputs out = c.emit_with("Dropout", {c.in(0) + c.in(1), c.in(3), c.in(4)}, {"seed"}, 2);
  if (c.has_input(2)) out[0] = out[0] + c.in(2);
  return out;
}

// (a + bi) * (c + di), of pairs along the last axis.
template <bool conjugate>
Outputs complex_mul(GradientContext& c) {
  const auto parts = [&](Expr e) {
    return c.emit_many("Split", {e}, 2, {{"axis", std::int64_t{-1}}, {"num_outputs", std::int64_t{2}}});
  };
  const Outputs a = parts(c.in(0));
  const Outputs b = parts(c.in(1));
  const Expr products[] = {a[0] * b[0], a[1] * b[1], a[1] * b[0], a[0] * b[1]};
  const Expr real = conjugate ? products[0] + products[1] : products[0] - products[1];
  const Expr imaginary = conjugate ? products[2] - products[3] : products[2] + products[3];
  return {c.emit("Concat", {real, imaginary}, {{"axis", std::int64_t{-1}}})};
}

Outputs cdist(GradientContext& c) {
  const Expr apart = c.emit("Unsqueeze", {c.in(0), c.ints({1})}) - c.emit("Unsqueeze", {c.in(1), c.ints({0})});
  const Expr squares = c.sum(square(apart), {2}, false);
  return {parse<CDistAttrs>(c).metric == "euclidean" ? call("Sqrt", squares) : squares};
}

// --- fused activations -----------------------------------------------------------------------------------------------------

Expr activate(GradientContext& c, Expr x) {
  const FusedActivationAttrs a = read_fused_activation(c.node());
  const auto plain = [&](const char* op) { return call(op, x); };
  const auto with_alpha = [&](const char* op) { return c.emit(op, {x}, {{"alpha", a.alpha}}); };
  switch (a.kind) {
    case FusedActivation::none: return x;
    case FusedActivation::relu: return plain("Relu");
    case FusedActivation::tanh: return plain("Tanh");
    case FusedActivation::sigmoid: return plain("Sigmoid");
    case FusedActivation::leaky_relu: return with_alpha("LeakyRelu");
    case FusedActivation::thresholded_relu: return with_alpha("ThresholdedRelu");
    case FusedActivation::hard_sigmoid: return c.emit("HardSigmoid", {x}, {{"alpha", a.alpha}, {"beta", a.beta}});
    case FusedActivation::hard_swish: return plain("HardSwish");
    case FusedActivation::clip:
      return c.emit("Clip", {x, c.scalar(static_cast<double>(a.alpha)), c.scalar(static_cast<double>(a.beta))});
    case FusedActivation::elu: return with_alpha("Elu");
    case FusedActivation::silu: return scaled_silu(x, 1);
    case FusedActivation::gelu: return gelu(x);
    case FusedActivation::gelu_tanh: return gelu_by_tanh(x);
    case FusedActivation::quick_gelu: return scaled_silu(x, static_cast<double>(a.alpha));
    case FusedActivation::softsign: return plain("Softsign");
    case FusedActivation::softplus: return plain("Softplus");
    case FusedActivation::selu: return c.emit("Selu", {x}, {{"alpha", a.alpha}, {"gamma", a.gamma}});
    case FusedActivation::celu: return with_alpha("Celu");
  }
  return x;
}

// --- products --------------------------------------------------------------------------------------------------------------

Outputs fused_gemm(GradientContext& c) {
  std::vector<Expr> inputs{c.in(0), c.in(1)};
  if (c.has_input(2)) inputs.push_back(c.in(2));
  return {activate(c, c.emit_with("Gemm", inputs, {"alpha", "beta", "transA", "transB"})[0])};
}

// The operand as [batch…, rows, columns]: transBatch stores [rows, batch…, columns].
Expr operand(GradientContext& c, Expr e, bool trans, bool trans_batch) {
  const std::int64_t rank = c.rank(e);
  if (rank < 2) return e;
  std::vector<std::int64_t> perm(static_cast<std::size_t>(rank));
  std::iota(perm.begin(), perm.end(), 0);
  if (trans_batch && rank > 2) std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
  if (trans) std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return std::is_sorted(perm.begin(), perm.end()) ? e : c.emit("Transpose", {e}, {{"perm", perm}});
}

Outputs fused_matmul(GradientContext& c) {
  const auto attr = parse<FusedMatMulAttrs>(c);
  const Expr product = call("MatMul", operand(c, c.in(0), attr.trans_a, attr.trans_batch_a),
                            operand(c, c.in(1), attr.trans_b, attr.trans_batch_b));
  return {activate(c, attr.alpha == 1 ? product : product * static_cast<double>(attr.alpha))};
}

Outputs gemm_fast_gelu(GradientContext& c) {
  const Expr product = call("MatMul", c.in(0), c.in(1));
  return {gelu_by_tanh(c.has_input(2) ? product + c.in(2) : product)};
}

Outputs fused_conv(GradientContext& c) {
  std::vector<Expr> inputs{c.in(0), c.in(1)};
  if (c.has_input(2)) inputs.push_back(c.in(2));
  const Expr y = c.emit_with("Conv", inputs, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"})[0];
  return {activate(c, c.has_input(3) ? y + c.in(3) : y)};
}

// Products of input 0 with packed weights, which have no gradients: multiplying an identity matrix gives the weights as numbers.
void packed_product(GradientContext& c) {
  for (std::size_t i = 1; i < c.num_inputs(); ++i) {
    if (c.wants(i)) c.refuse("the weights");
  }
  const Expr a = c.in(0);
  const Expr k = c.extents(a, -1, std::numeric_limits<std::int64_t>::max());
  const Expr eye = c.emit("EyeLike", {c.emit("Expand", {c.scalar(0), c.emit("Concat", {k, k}, {{"axis", std::int64_t{0}}})})});
  std::vector<Expr> inputs{eye};
  constexpr std::size_t kBias = 5;
  for (std::size_t i = 1; i < c.num_inputs() && i < kBias; ++i) inputs.push_back(c.in(i));
  const Expr weights = c.repeat(inputs);
  c.set(0, call("MatMul", c.dy(), c.emit("Transpose", {weights})));
}

// --- moving elements ---------------------------------------------------------------------------------------------------------

Outputs pad(GradientContext& c) {
  std::vector<Expr> inputs{c.in(0), c.emit("Reshape", {c.in(1), c.ints({-1})})};
  if (c.has_input(2)) inputs.push_back(c.emit("Squeeze", {c.in(2)}));
  return c.emit_with("Pad", inputs, {"mode"});
}

void expand_dims(GradientContext& c) { c.set(0, c.reshape_like(c.dy(), c.in(0))); }

void moved(GradientContext& c) {
  c.set(0, c.by_position(c.in(0), c.dy(), [&](Expr positions) {
    std::vector<Expr> inputs{positions};
    for (std::size_t i = 1; i < c.num_inputs(); ++i) inputs.push_back(c.in(i));
    return c.repeat(inputs);
  }));
}

}  // namespace

void register_gradients_microsoft(GradientTable& t) {
  t.add({{"com.microsoft.Gelu", by_formula<plain_gelu>},
         {"com.microsoft.BiasGelu", by_formula<bias_gelu>},
         {"com.microsoft.FastGelu", by_formula<fast_gelu>},
         {"com.microsoft.QuickGelu", by_formula<quick_gelu>},
         {"SwiGLU", by_formula<swiglu>},
         {"com.microsoft.BiasAdd", by_formula<bias_add>},
         {"com.microsoft.BiasSplitGelu", by_formula<bias_split_gelu>},
         {"com.microsoft.BiasSoftmax", by_formula<bias_softmax>},
         {"com.microsoft.BiasDropout", by_formula<bias_dropout>},
         {"com.microsoft.ComplexMul", by_formula<complex_mul<false>>},
         {"com.microsoft.ComplexMulConj", by_formula<complex_mul<true>>},
         {"com.microsoft.CDist", by_formula<cdist>}});
  t.add({{"com.microsoft.FusedGemm", by_formula<fused_gemm>},
         {"com.microsoft.FusedMatMul", by_formula<fused_matmul>},
         {"com.microsoft.TransposeMatMul", by_formula<fused_matmul>},
         {"com.microsoft.FusedMatMulActivation", by_formula<fused_matmul>},
         {"com.microsoft.GemmFastGelu", by_formula<gemm_fast_gelu>},
         {"com.microsoft.FusedConv", by_formula<fused_conv>},
         {"com.microsoft.MatMulNBits", packed_product}});
  t.add({{"com.microsoft.Pad", by_formula<pad>}, {"com.microsoft.ExpandDims", expand_dims}});
  t.add({"com.microsoft.GatherND", "com.microsoft.Trilu", "com.microsoft.UnfoldTensor"}, moved);
}

}  // namespace sdx::ops
