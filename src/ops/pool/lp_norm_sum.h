#pragma once
// The p-norm of LpPool, GlobalLpPool and LpNormalization.

#include <cmath>

#include "base/error.h"
#include "graph/attribute.h"

namespace sdx::ops {

// root(sum of term(x)); 1 and 2 avoid pow().
struct LpNorm {
  double p = 2;

  double term(double x) const {
    if (p == 2) return x * x;
    if (p == 1) return std::fabs(x);
    return std::pow(std::fabs(x), p);
  }
  double root(double sum) const {
    if (p == 2) return std::sqrt(sum);
    if (p == 1) return sum;
    return std::pow(sum, 1 / p);
  }
};

// Attribute `p`, 2 if missing (a float in opset 1, an integer later).
inline LpNorm read_p(const Attributes& attrs) {
  const double p = static_cast<double>(attrs.get_float("p", 2.0F));
  if (!(p > 0)) fail(ErrorCode::invalid_model, "attribute 'p' is {}; a norm needs a positive number", p);
  return {p};
}

}  // namespace sdx::ops
