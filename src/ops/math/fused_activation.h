#pragma once
// Activations that com.microsoft's fused operators apply to their own result.

#include <vector>

#include "ops/context.h"

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

struct FusedActivationAttrs {
  FusedActivation kind = FusedActivation::none;
  float alpha = 0, beta = 0, gamma = 0;
};

// From attribute `activation` with `activation_params` (FusedConv) or `activation_alpha`, `activation_beta` (FusedGemm). None
// when missing or empty. Throws Error(invalid_model) for an unknown word.
FusedActivationAttrs read_fused_activation(const Attributes& attrs);

// In place, on a floating tensor.
void apply_fused_activation(const FusedActivationAttrs& activation, Tensor& y);

}  // namespace sdx::ops
