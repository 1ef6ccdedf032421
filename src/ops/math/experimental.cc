// Affine, ParametricSoftplus, ScaledTanh: experimental operators of opset 1, removed from ONNX in opset 10,
// which files of the first converters (CoreML, WinML) still hold.

#include <cmath>

#include "ops/math/elementwise.h"
#include "ops/math/signatures.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

void run_affine(OpContext& c) {
  const auto k = parse<ExperimentalAttrs>(c);
  map_floats(c, [=](auto x) { return static_cast<decltype(x)>(k.alpha) * x + static_cast<decltype(x)>(k.beta); });
}

void run_parametric_softplus(OpContext& c) {
  const auto k = parse<ExperimentalAttrs>(c);
  map_floats(c, [=](auto x) { return static_cast<decltype(x)>(k.alpha) * softplus(static_cast<decltype(x)>(k.beta) * x); });
}

void run_scaled_tanh(OpContext& c) {
  const auto k = parse<ExperimentalAttrs>(c);
  map_floats(c, [=](auto x) { return static_cast<decltype(x)>(k.alpha) * std::tanh(static_cast<decltype(x)>(k.beta) * x); });
}

void add(OpTable& t, const char* name, RunFn run) {
  OpDef def(name, 1);
  def.in("X", "T", types::floats).out("Y", "T", types::floats).attrs<ExperimentalAttrs>();
  def.deprecated_at = 10;
  t.add(std::move(def).infer_with(infer_same).run_with(run));
}

}  // namespace

void register_experimental(OpTable& t) {
  add(t, "Affine", run_affine);
  add(t, "ParametricSoftplus", run_parametric_softplus);
  add(t, "ScaledTanh", run_scaled_tanh);
}

}  // namespace sdx::ops
