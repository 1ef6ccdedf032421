#include "providers/cpu/activation.h"

#include <limits>
#include <string_view>

#include "ops/math/fused_activation.h"
#include "ops/math/signatures.h"
#include "tensor/element.h"

namespace sdx::cpu {
namespace {

struct Plain {
  std::string_view op;
  Unary unary;
};

constexpr Plain kPlain[] = {
    {"Relu", Unary::relu}, {"Sigmoid", Unary::sigmoid},
    {"Tanh", Unary::tanh}, {"Softplus", Unary::softplus},
    {"Exp", Unary::exp},   {"Log", Unary::log},
    {"Sqrt", Unary::sqrt}, {"Reciprocal", Unary::reciprocal},
    {"Abs", Unary::abs},   {"Neg", Unary::neg},
    {"Erf", Unary::erf},   {"Floor", Unary::floor},
    {"Ceil", Unary::ceil}, {"Round", Unary::round},
    {"Sign", Unary::sign}, {"Softsign", Unary::softsign},
    {"Mish", Unary::mish}, {"HardSwish", Unary::hard_swish},
};

std::optional<float> scalar_constant(const LowerContext& c, std::size_t i, float otherwise) {
  if (!c.has_input(i)) return otherwise;
  const Tensor* t = c.constant(i);
  if (t == nullptr || t->size() != 1) return std::nullopt;
  return static_cast<float>(element_as_double(*t, 0));
}

std::optional<UnarySpec> clip_of(const LowerContext& c) {
  constexpr float kMax = std::numeric_limits<float>::max();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  std::optional<float> low, high;
  if (c.node().version < 11) {
    const auto attr = ops::parse<ops::ClipAttrs>(c);
    low = attr.min.value_or(-kMax);
    high = attr.max.value_or(kMax);
  } else {
    low = scalar_constant(c, ops::ClipIn::kMin, -kInf);
    high = scalar_constant(c, ops::ClipIn::kMax, kInf);
  }
  if (!low || !high) return std::nullopt;
  return UnarySpec{Unary::clip, *low, *high};
}

}  // namespace

std::optional<UnarySpec> unary_of(const LowerContext& c) {
  const std::string& op = c.node().op_type;
  for (const Plain& p : kPlain) {
    if (op == p.op) return UnarySpec{p.unary, 0, 0};
  }
  if (op == "Clip") return clip_of(c);
  if (op == "Shrink") {
    const auto shrink = ops::parse<ops::ShrinkAttrs>(c);
    return UnarySpec{Unary::shrink, shrink.lambd, shrink.bias};
  }
  const auto a = ops::parse<ops::ActivationAttrs>(c);
  if (op == "LeakyRelu") return UnarySpec{Unary::leaky_relu, a.alpha, 0};
  if (op == "HardSigmoid") return UnarySpec{Unary::hard_sigmoid, a.alpha, a.beta};
  if (op == "Elu") return UnarySpec{Unary::elu, a.alpha, 0};
  if (op == "Selu") return UnarySpec{Unary::selu, a.alpha, a.gamma};
  if (op == "Celu" && a.alpha != 0) return UnarySpec{Unary::celu, a.alpha, 0};
  if (op == "ThresholdedRelu") return UnarySpec{Unary::thresholded_relu, a.alpha, 0};
  if (op == "Swish" || op == "QuickGelu") return UnarySpec{Unary::silu, a.alpha, 0};
  if (op == "FastGelu") {
    if (c.has_input(1)) return std::nullopt;  // a bias
    return UnarySpec{Unary::gelu_tanh, a.alpha, 0};
  }
  if (op == "Gelu") {
    return UnarySpec{ops::parse<ops::GeluAttrs>(c).tanh() ? Unary::gelu_tanh : Unary::gelu, a.alpha, 0};
  }
  return std::nullopt;
}

std::optional<UnarySpec> fused_activation(const Node& node) {
  const ops::FusedActivationAttrs a = ops::read_fused_activation(node);
  using Kind = ops::FusedActivation;
  switch (a.kind) {
    case Kind::none: return UnarySpec{};
    case Kind::relu: return UnarySpec{Unary::relu, 0, 0};
    case Kind::tanh: return UnarySpec{Unary::tanh, 0, 0};
    case Kind::sigmoid: return UnarySpec{Unary::sigmoid, 0, 0};
    case Kind::softplus: return UnarySpec{Unary::softplus, 0, 0};
    case Kind::softsign: return UnarySpec{Unary::softsign, 0, 0};
    case Kind::hard_swish: return UnarySpec{Unary::hard_swish, 0, 0};
    case Kind::leaky_relu: return UnarySpec{Unary::leaky_relu, a.alpha, 0};
    case Kind::silu: return UnarySpec{Unary::silu, 1, 0};
    case Kind::quick_gelu: return UnarySpec{Unary::silu, a.alpha, 0};
    case Kind::gelu: return UnarySpec{Unary::gelu, a.alpha, 0};
    case Kind::gelu_tanh: return UnarySpec{Unary::gelu_tanh, a.alpha, 0};
    case Kind::clip: return UnarySpec{Unary::clip, a.alpha, a.beta};
    case Kind::hard_sigmoid: return UnarySpec{Unary::hard_sigmoid, a.alpha, a.beta};
    case Kind::thresholded_relu:
    case Kind::elu:
    case Kind::selu:
    case Kind::celu: return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace sdx::cpu
