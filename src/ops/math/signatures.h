#pragma once
// Element-wise operators: attributes and places of inputs.

#include "ops/signature.h"

namespace sdx::ops {

// Activation functions with coefficients: Celu, Elu, HardSigmoid, LeakyRelu, QuickGelu, Selu, Swish, SwiGLU, ThresholdedRelu, and
// the experimental ones of ai.onnx 1.
struct ActivationAttrs {
  float alpha = 1, beta = 0, gamma = 0;

  // The defaults of the operator `name`; those with `beta` or `gamma` are the ones that have such an attribute.
  static constexpr ActivationAttrs of(std::string_view name, int version) {
    // Selu's constants had four decimals before opset 6.
    if (name == "Selu" && version < 6) return {1.6732F, 0, 1.0507F};
    if (name == "Selu") return {1.67326319217681884765625F, 0, 1.05070102214813232421875F};
    if (name == "LeakyRelu" || name == "QLinearLeakyRelu") return {0.01F, 0, 0};
    if (name == "HardSigmoid") return {0.2F, 0.5F, 0};
    if (name == "QuickGelu") return {1.702F, 0, 0};
    if (name == "Gelu" || name == "FastGelu") return {0, 0, 0};  // see fuse-gelu
    return {};
  }

  void fields(auto& f, const OpId& op) {
    *this = of(op.name, op.version);
    f("alpha", alpha);
    if (op.name == "HardSigmoid") f("beta", beta);
    if (op.name == "Selu") f("gamma", gamma);
  }
};

struct GeluAttrs {  // ai.onnx
  std::string_view approximate = "none";

  bool tanh() const { return approximate == "tanh"; }
  void fields(auto& f) { f("approximate", approximate); }
};

struct ShrinkAttrs {
  float lambd = 0.5F, bias = 0;

  void fields(auto& f) {
    f("lambd", lambd);
    f("bias", bias);
  }
};

// Before opset 11; inputs afterwards.
struct ClipAttrs {
  std::optional<float> min, max;

  void fields(auto& f) {
    f("min", min);
    f("max", max);
    f.unread("consumed_inputs", AttrKind::ints);
  }
};
struct ClipIn {
  enum Slot : std::size_t { kInput, kMin, kMax };
};

// Cast, CastLike, BitCast.
struct CastAttrs {
  std::int64_t to = 0;    // an element type; not of CastLike
  std::string_view word;  // Cast 1: its name
  bool saturate = true;
  std::string_view round_mode = "up";

  void fields(auto& f, const OpId& op) {
    if (op.name == "Cast" && op.version < 6) return f.either("to", to, word);
    if (op.name != "CastLike") f.required("to", to);
    if (op.name == "BitCast") return;
    f("saturate", saturate);
    f("round_mode", round_mode);
  }
};

struct ModAttrs {
  bool fmod = false;

  void fields(auto& f) { f("fmod", fmod); }
};

// Two operands before opset 7: whether and from which axis on the second is broadcast.
struct LegacyBroadcastAttrs {
  std::int64_t axis = -1;
  bool broadcast = false;

  void fields(auto& f, const OpId& op) {
    f("axis", axis);
    f("broadcast", broadcast);
    const bool arithmetic = op.name == "Add" || op.name == "Sub" || op.name == "Mul" || op.name == "Div";
    if (arithmetic) f.unread("consumed_inputs", AttrKind::ints);
  }
};

// IsInf.
struct BitShiftAttrs {
  std::string_view direction;  // "LEFT" or "RIGHT"

  void fields(auto& f) { f.required("direction", direction); }
};

struct IsInfAttrs {
  bool detect_negative = true, detect_positive = true;

  void fields(auto& f) {
    f("detect_negative", detect_negative);
    f("detect_positive", detect_positive);
  }
};

// Affine, ParametricSoftplus, ScaledTanh.
struct ExperimentalAttrs {
  float alpha = 0, beta = 0;

  void fields(auto& f, const OpId& op) {
    if (op.name == "Affine") alpha = 1;
    f("alpha", alpha);
    f("beta", beta);
  }
};

}  // namespace sdx::ops
