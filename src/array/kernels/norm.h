#pragma once
// The derivative of normalisations over rows: kernel.

#include "array/emitter.h"

namespace sdx::array::detail {

// Inputs: x, the result's gradient, the weight or none; float32 or float64. Attributes: "rms" (no mean is taken away), "epsilon"
// (a tensor, float64). Outputs: gradients of x, of the weight, of the bias.
const ArrayOp& norm_gradient_op();

}  // namespace sdx::array::detail
