#include "ops/math/fused_activation.h"

#include <cmath>
#include <limits>

#include "ops/math/signatures.h"
#include "tensor/dispatch.h"

namespace sdx::ops {
namespace {

struct Known {
  std::string_view name;
  FusedActivation kind;
};

constexpr int kNewest = 1000;  // of the operator that the word names
constexpr ActivationAttrs kClip{std::numeric_limits<float>::lowest(), std::numeric_limits<float>::max(), 0};

constexpr Known kKnown[] = {
    {"Relu", FusedActivation::relu},
    {"Tanh", FusedActivation::tanh},
    {"Sigmoid", FusedActivation::sigmoid},
    {"LeakyRelu", FusedActivation::leaky_relu},
    {"ThresholdedRelu", FusedActivation::thresholded_relu},
    {"HardSigmoid", FusedActivation::hard_sigmoid},
    {"HardSwish", FusedActivation::hard_swish},
    {"Clip", FusedActivation::clip},
    {"Elu", FusedActivation::elu},
    {"Silu", FusedActivation::silu},
    {"Swish", FusedActivation::silu},
    {"Gelu", FusedActivation::gelu},
    {"FastGelu", FusedActivation::gelu_tanh},
    {"QuickGelu", FusedActivation::quick_gelu},
    {"Softsign", FusedActivation::softsign},
    {"Softplus", FusedActivation::softplus},
    {"Selu", FusedActivation::selu},
    {"Celu", FusedActivation::celu},
};

// Gelu as nodes compute it that multiply with x before they halve (alpha 1): infinite where that product is.
double halved(double y, double alpha) {
  constexpr double kMost = static_cast<double>(std::numeric_limits<float>::max());
  return alpha == 1 && y > kMost / 2 ? std::numeric_limits<double>::infinity() : y;
}

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
    case FusedActivation::gelu: return halved(0.5 * x * (1 + std::erf(x * 0.70710678118654752)), alpha);
    case FusedActivation::gelu_tanh:
      return halved(0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))), alpha);
    case FusedActivation::quick_gelu: return x / (1 + std::exp(-alpha * x));
    case FusedActivation::softsign: return x / (1 + std::fabs(x));
    case FusedActivation::softplus: return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x)));
    case FusedActivation::selu: return static_cast<double>(a.gamma) * (x >= 0 ? x : alpha * std::expm1(x));
    case FusedActivation::celu: return x >= 0 ? x : alpha * std::expm1(x / alpha);
  }
  return x;
}

}  // namespace

FusedActivationAttrs read_fused_activation(const Node& node) {
  const auto attr = parse<FusedActivationFields>(node);
  const std::string_view word = attr.activation;
  if (word.empty()) return {};
  for (const Known& k : kKnown) {
    if (k.name != word) continue;
    const ActivationAttrs d = k.kind == FusedActivation::clip ? kClip : ActivationAttrs::of(k.name, kNewest);
    FusedActivationAttrs a{k.kind, attr.alpha.value_or(d.alpha), attr.beta.value_or(d.beta), attr.gamma.value_or(d.gamma)};
    if (!attr.params.empty()) a.alpha = attr.params[0];
    if (attr.params.size() > 1) a.beta = attr.params[1];
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
