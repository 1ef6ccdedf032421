// Affine, ParametricSoftplus, ScaledTanh: experimental operators of opset 1, removed from ONNX in opset 10,
// which files of the first converters (CoreML, WinML) still hold.

#include <cmath>

#include "ops/math/elementwise.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

struct Pair {
  float alpha, beta;
};

Pair coefficients(const OpContext& c, float alpha, float beta) {
  return {c.attrs().get_float("alpha", alpha), c.attrs().get_float("beta", beta)};
}

void run_affine(OpContext& c) {
  const Pair k = coefficients(c, 1.0F, 0.0F);
  map_floats(c, [=](auto x) { return static_cast<decltype(x)>(k.alpha) * x + static_cast<decltype(x)>(k.beta); });
}

void run_parametric_softplus(OpContext& c) {
  const Pair k = coefficients(c, 0.0F, 0.0F);
  map_floats(c, [=](auto x) { return static_cast<decltype(x)>(k.alpha) * softplus(static_cast<decltype(x)>(k.beta) * x); });
}

void run_scaled_tanh(OpContext& c) {
  const Pair k = coefficients(c, 0.0F, 0.0F);
  map_floats(c, [=](auto x) { return static_cast<decltype(x)>(k.alpha) * std::tanh(static_cast<decltype(x)>(k.beta) * x); });
}

OpDef experimental(const char* name, std::initializer_list<const char*> floats) {
  OpDef def(name, 1);
  def.in("X", "T", types::floats).out("Y", "T", types::floats);
  for (const char* a : floats) def.attr(a, AttrKind::f);
  def.deprecated_at = 10;
  return def;
}

}  // namespace

void register_experimental(OpTable& t) {
  t.add(experimental("Affine", {"alpha", "beta"}).infer_with(infer_same).run_with(run_affine));
  t.add(experimental("ParametricSoftplus", {"alpha", "beta"}).infer_with(infer_same).run_with(run_parametric_softplus));
  t.add(experimental("ScaledTanh", {"alpha", "beta"}).infer_with(infer_same).run_with(run_scaled_tanh));
}

}  // namespace sdx::ops
