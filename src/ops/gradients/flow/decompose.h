#pragma once
// Gradients of operators by way of simpler ones that compute the same.

#include <functional>
#include <vector>

#include "ops/gradient.h"

namespace sdx::ops::flow {

// Writes what the operator computes of its inputs (null where left out) and returns its outputs; null: one that is not computed.
using Formula = std::function<std::vector<Expr>(GradientContext&, const std::vector<Expr>& inputs)>;

// Sets the gradients of all wanted inputs: those of the formula's nodes, which are computed again as far as they are needed.
void differentiate(GradientContext& c, const Formula& formula);

}  // namespace sdx::ops::flow
