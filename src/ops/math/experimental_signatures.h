#pragma once
// Affine, ParametricSoftplus, ScaledTanh: attributes.

#include "ops/signature.h"

namespace sdx::ops {

struct ExperimentalAttrs {
  float alpha = 0, beta = 0;

  void fields(auto& f, const OpId& op) {
    if (op.name == "Affine") alpha = 1;
    f("alpha", alpha);
    f("beta", beta);
  }
};

}  // namespace sdx::ops
