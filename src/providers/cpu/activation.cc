#include "providers/cpu/activation.h"

#include <cmath>
#include <limits>
#include <string_view>

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
    low = c.attrs().get_float("min", -kMax);
    high = c.attrs().get_float("max", kMax);
  } else {
    low = scalar_constant(c, 1, -kInf);
    high = scalar_constant(c, 2, kInf);
  }
  if (!low || !high) return std::nullopt;
  return UnarySpec{Unary::clip, *low, *high};
}

}  // namespace

std::optional<UnarySpec> unary_of(const LowerContext& c) {
  const std::string& op = c.node().op_type;
  const Attributes& a = c.attrs();
  for (const Plain& p : kPlain) {
    if (op == p.op) return UnarySpec{p.unary, 0, 0};
  }
  if (op == "Clip") return clip_of(c);
  if (op == "LeakyRelu") return UnarySpec{Unary::leaky_relu, a.get_float("alpha", 0.01F), 0};
  if (op == "HardSigmoid") return UnarySpec{Unary::hard_sigmoid, a.get_float("alpha", 0.2F), a.get_float("beta", 0.5F)};
  if (op == "Elu") return UnarySpec{Unary::elu, a.get_float("alpha", 1.0F), 0};
  if (op == "Selu") {
    // Defaults of opset 6 on; opset 1 differs in the seventh digit.
    return UnarySpec{Unary::selu, a.get_float("alpha", 1.67326319217681884765625F),
                     a.get_float("gamma", 1.05070102214813232421875F)};
  }
  if (op == "Celu") {
    const float alpha = a.get_float("alpha", 1.0F);
    if (alpha == 0) return std::nullopt;
    return UnarySpec{Unary::celu, alpha, 0};
  }
  if (op == "ThresholdedRelu") return UnarySpec{Unary::thresholded_relu, a.get_float("alpha", 1.0F), 0};
  if (op == "Swish") return UnarySpec{Unary::silu, a.get_float("alpha", 1.0F), 0};
  if (op == "QuickGelu") return UnarySpec{Unary::silu, a.get_float("alpha", 1.702F), 0};
  if (op == "FastGelu") {
    if (c.has_input(1)) return std::nullopt;  // a bias
    return UnarySpec{Unary::gelu_tanh, 0, 0};
  }
  if (op == "Gelu") {
    return UnarySpec{a.get_string("approximate", "none") == "tanh" ? Unary::gelu_tanh : Unary::gelu, 0, 0};
  }
  return std::nullopt;
}

std::optional<UnarySpec> fused_activation(const Attributes& attrs) {
  const std::string op = attrs.get_string("activation", "");
  if (op.empty()) return UnarySpec{};
  const std::vector<float> p = attrs.get_floats("activation_params");
  // FusedConv lists its parameters; FusedGemm has an attribute for each.
  const auto at = [&](std::size_t i, float otherwise) {
    return i < p.size() ? p[i] : attrs.get_float(i == 0 ? "activation_alpha" : "activation_beta", otherwise);
  };
  for (const Plain& plain : kPlain) {
    if (op == plain.op) return UnarySpec{plain.unary, 0, 0};
  }
  if (op == "LeakyRelu") return UnarySpec{Unary::leaky_relu, at(0, 0.01F), 0};
  if (op == "Silu" || op == "Swish") return UnarySpec{Unary::silu, 1, 0};
  if (op == "QuickGelu") return UnarySpec{Unary::silu, at(0, 1.702F), 0};
  if (op == "Gelu") return UnarySpec{Unary::gelu, 0, 0};
  if (op == "FastGelu") return UnarySpec{Unary::gelu_tanh, 0, 0};
  if (op == "Clip")
    return UnarySpec{Unary::clip, at(0, std::numeric_limits<float>::lowest()), at(1, std::numeric_limits<float>::max())};
  if (op == "HardSigmoid") return UnarySpec{Unary::hard_sigmoid, at(0, 0.2F), at(1, 0.5F)};
  return std::nullopt;
}

}  // namespace sdx::cpu
