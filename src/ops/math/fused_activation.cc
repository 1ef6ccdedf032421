#include "ops/math/fused_activation.h"

#include <cmath>

#include "tensor/dispatch.h"

namespace sdx::ops {
namespace {

struct Known {
  std::string_view name;
  FusedActivation kind;
  float alpha, beta;  // defaults: those of the ONNX operators of the same name
};

constexpr Known kKnown[] = {
    {"Relu", FusedActivation::relu, 0, 0},
    {"Tanh", FusedActivation::tanh, 0, 0},
    {"Sigmoid", FusedActivation::sigmoid, 0, 0},
    {"LeakyRelu", FusedActivation::leaky_relu, 0.01F, 0},
    {"ThresholdedRelu", FusedActivation::thresholded_relu, 1, 0},
    {"HardSigmoid", FusedActivation::hard_sigmoid, 0.2F, 0.5F},
    {"HardSwish", FusedActivation::hard_swish, 0, 0},
    {"Clip", FusedActivation::clip, -3.4028234663852886e38F, 3.4028234663852886e38F},
    {"Elu", FusedActivation::elu, 1, 0},
    {"Silu", FusedActivation::silu, 0, 0},
    {"Swish", FusedActivation::silu, 0, 0},
    {"Gelu", FusedActivation::gelu, 0, 0},
    {"FastGelu", FusedActivation::gelu_tanh, 0, 0},
    {"QuickGelu", FusedActivation::quick_gelu, 1.702F, 0},
    {"Softsign", FusedActivation::softsign, 0, 0},
    {"Softplus", FusedActivation::softplus, 0, 0},
    {"Selu", FusedActivation::selu, 1.67326324F, 0},
    {"Celu", FusedActivation::celu, 1, 0},
};

double activated(const FusedActivationAttrs& a, double x) {
  const double alpha = static_cast<double>(a.alpha);
  const double beta = static_cast<double>(a.beta);
  switch (a.kind) {
    case FusedActivation::none: return x;
    case FusedActivation::relu: return x < 0 ? 0 : x;
    case FusedActivation::tanh: return std::tanh(x);
    case FusedActivation::sigmoid: return 1 / (1 + std::exp(-x));
    case FusedActivation::leaky_relu: return x >= 0 ? x : alpha * x;
    case FusedActivation::thresholded_relu: return x > alpha ? x : 0;
    case FusedActivation::hard_sigmoid: return std::fmin(std::fmax(alpha * x + beta, 0), 1);
    case FusedActivation::hard_swish: return x * std::fmin(std::fmax(x / 6 + 0.5, 0), 1);
    case FusedActivation::clip: return x < alpha ? alpha : x > beta ? beta : x;
    case FusedActivation::elu: return x >= 0 ? x : alpha * std::expm1(x);
    case FusedActivation::silu: return x / (1 + std::exp(-x));
    case FusedActivation::gelu: return 0.5 * x * (1 + std::erf(x * 0.70710678118654752));
    case FusedActivation::gelu_tanh: return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    case FusedActivation::quick_gelu: return x / (1 + std::exp(-alpha * x));
    case FusedActivation::softsign: return x / (1 + std::fabs(x));
    case FusedActivation::softplus: return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x)));
    case FusedActivation::selu: return static_cast<double>(a.gamma) * (x >= 0 ? x : alpha * std::expm1(x));
    case FusedActivation::celu: return x >= 0 ? x : alpha * std::expm1(x / alpha);
  }
  return x;
}

}  // namespace

FusedActivationAttrs read_fused_activation(const Attributes& attrs) {
  const std::string word = attrs.get_string("activation", "");
  if (word.empty()) return {};
  for (const Known& k : kKnown) {
    if (k.name != word) continue;
    FusedActivationAttrs a{k.kind, attrs.get_float("activation_alpha", k.alpha), attrs.get_float("activation_beta", k.beta),
                           attrs.get_float("activation_gamma", 1.05070102F)};
    const std::vector<float> params = attrs.get_floats("activation_params");
    if (!params.empty()) a.alpha = params[0];
    if (params.size() > 1) a.beta = params[1];
    return a;
  }
  std::string known;
  for (const Known& k : kKnown) known += (known.empty() ? "" : ", ") + std::string(k.name);
  fail(ErrorCode::invalid_model, "attribute 'activation' is '{}'; permitted: {}", word, known);
}

void apply_fused_activation(const FusedActivationAttrs& activation, Tensor& y) {
  if (activation.kind == FusedActivation::none) return;
  dispatch(y.dtype(), FloatTypes{}, "fused activation", [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* p = static_cast<T*>(y.mutable_data());
    for (std::int64_t i = 0; i < y.size(); ++i) {
      p[i] = T(static_cast<ComputeType<T>>(activated(activation, static_cast<double>(static_cast<ComputeType<T>>(p[i])))));
    }
  });
}

}  // namespace sdx::ops
