#pragma once
// Activations that a kernel applies before it stores its results; internal to the kernels.

#include <limits>

#include "kernels/cpu/elementwise/elementwise.h"

namespace sdx::cpu {

// An activation as bounds of the result; `after`: it is no bound and must be applied to the stored results.
struct Bounds {
  float lo = -std::numeric_limits<float>::infinity();
  float hi = std::numeric_limits<float>::infinity();
  bool after = false;

  explicit Bounds(const UnarySpec& act) {
    if (act.op == Unary::relu) {
      lo = 0.0F;
    } else if (act.op == Unary::clip) {
      lo = act.a;
      hi = act.b;
    } else {
      after = act.op != Unary::none;
    }
  }
};

}  // namespace sdx::cpu
