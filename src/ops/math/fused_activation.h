#pragma once
// Activations that com.microsoft's fused operators apply to their own result.

#include "ops/context.h"
#include "ops/signature.h"

namespace sdx::ops {

enum class FusedActivation : std::uint8_t {
  none,
  relu,
  tanh,
  sigmoid,
  leaky_relu,
  thresholded_relu,
  hard_sigmoid,
  hard_swish,
  clip,
  elu,
  silu,
  gelu,
  gelu_tanh,
  quick_gelu,
  softsign,
  softplus,
  selu,
  celu
};

// The attributes: FusedConv's kinds list their parameters, products have one attribute for each.
struct FusedActivationFields {
  std::string_view activation;  // none when missing or empty
  std::optional<float> alpha, beta, gamma;
  FloatList params;

  void fields(auto& f, const OpId& op) {
    if (op.name == "FusedMatMulActivation") {
      f.required("activation", activation);
    } else {
      f("activation", activation);
    }
    if (op.name.ends_with("Conv")) return f("activation_params", params);
    f("activation_alpha", alpha);
    f("activation_beta", beta);
    if (op.domain != "sdx") f("activation_gamma", gamma);
  }
};

struct FusedActivationAttrs {
  FusedActivation kind = FusedActivation::none;
  float alpha = 0, beta = 0, gamma = 0;
};

// Parameters that the node leaves out are those of the operator that the word names. Throws Error(invalid_model) for an unknown
// word.
FusedActivationAttrs read_fused_activation(const Node& node);

// Applies the function in place, to a floating tensor.
void apply_fused_activation(const FusedActivationAttrs& activation, Tensor& y);

}  // namespace sdx::ops
