#pragma once
// The p-norm of LpPool, GlobalLpPool and LpNormalization.

#include <cmath>

#include "base/error.h"
#include "ops/signature.h"

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

// LpPool, GlobalLpPool: a float in opset 1, an integer later.
struct PNormAttrs {
  float p = 2;

  void fields(auto& f, const OpId& op) {
    if (op.version < 2) return f("p", p);
    std::optional<std::int64_t> whole;
    f("p", whole);
    if (whole) p = static_cast<float>(*whole);
  }
};

inline LpNorm read_p(const Node& node) {
  const double p = static_cast<double>(parse<PNormAttrs>(node).p);
  if (!(p > 0)) fail(ErrorCode::invalid_model, "attribute 'p' is {}; a norm needs a positive number", p);
  return {p};
}

}  // namespace sdx::ops
