#pragma once
// Gradients of 16-bit floats by way of float32.

#include "ops/gradient.h"

namespace sdx::ops {

// Whether the gradient of this node counts, squares or sums elements of float16 or bfloat16. The sum of 65,520 ones exceeds
// float16, as does the square of 256, and bfloat16 counts to 256. The operators themselves compute in wider types.
bool needs_width(GradientContext& c);

// The node's operator on float32, with its results rounded as before.
std::vector<Expr> in_float32(GradientContext& c);

}  // namespace sdx::ops
