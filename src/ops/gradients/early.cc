// Gradients of the experimental operators of the first opsets.

#include "ops/gradient.h"
#include "ops/image/signatures.h"
#include "ops/math/signatures.h"

namespace sdx::ops {
namespace {

struct Constants {
  double alpha, beta;
  explicit Constants(const GradientContext& c)
      : alpha(static_cast<double>(parse<ExperimentalAttrs>(c).alpha)),
        beta(static_cast<double>(parse<ExperimentalAttrs>(c).beta)) {}
};

// alpha * x + beta
void affine(GradientContext& c) { c.set(0, c.dy() * Constants(c).alpha); }

// alpha * softplus(beta * x)
void parametric_softplus(GradientContext& c) {
  const Constants k(c);
  c.set(0, c.dy() * call("Sigmoid", c.in(0) * k.beta) * (k.alpha * k.beta));
}

// alpha * tanh(beta * x)
void scaled_tanh(GradientContext& c) {
  const Constants k(c);
  c.set(0, c.dy() * (1.0 - square(call("Tanh", c.in(0) * k.beta))) * (k.alpha * k.beta));
}

void image_scaler(GradientContext& c) { c.set(0, c.dy() * static_cast<double>(parse<ImageScalerAttrs>(c).scale)); }

}  // namespace

void register_gradients_early(GradientTable& t) {
  t.add({{"Affine", affine},
         {"ParametricSoftplus", parametric_softplus},
         {"ScaledTanh", scaled_tanh},
         {"ImageScaler", image_scaler}});
}

}  // namespace sdx::ops
