#pragma once
// Activations that kernels apply to their results.

#include <optional>

#include "kernels/cpu/elementwise/elementwise.h"
#include "providers/cpu/kernel_table.h"

namespace sdx::cpu {

// The function that a node of one input computes ("Relu", "Clip" with constant bounds, …); nothing when it is no such function or
// its parameters are not constant.
std::optional<UnarySpec> unary_of(const LowerContext& c);

// The function behind the `activation` and `activation_params` attributes of com.microsoft's fused operators; op none when there
// is no such attribute. Nothing for a function that the kernels lack.
std::optional<UnarySpec> fused_activation(const Node& node);

}  // namespace sdx::cpu
