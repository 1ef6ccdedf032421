#pragma once
// Operators of ONNX Runtime's training graphs: attributes and places of inputs. They are com.microsoft's, but for those in
// ai.onnx that its releases put there (MaxPoolGrad, AveragePoolGrad, SparseSoftmaxCrossEntropy with its gradient).
// Source: ONNX Runtime 1.19, core/graph/training_op_defs.cc.

#include "ops/conv/signatures.h"
#include "ops/signature.h"

namespace sdx::ops {

// ReluGrad and its like: (dY, X or Y).
struct ActivationGradIn {
  enum Slot : std::size_t { kDy, kSaved, kBias };
};

// LeakyReluGrad, QuickGeluGrad.
struct SlopeAttrs {
  float alpha = 0.01F;

  void fields(auto& f, const OpId& op) {
    alpha = op.name == "QuickGeluGrad" ? 1.702F : 0.01F;
    f("alpha", alpha);
  }
};

// SoftmaxGrad, LogSoftmaxGrad, and those with _13.
struct SoftmaxGradAttrs {
  std::int64_t axis = -1;
  bool flattened = false;  // the axes from `axis` on count as one

  void fields(auto& f, const OpId& op) {
    flattened = !op.name.ends_with("_13");
    axis = flattened ? 1 : -1;
    f("axis", axis);
  }
};

// Gradients of losses, and SoftmaxCrossEntropyLossInternal.
struct LossGradAttrs {
  std::optional<std::int64_t> ignore_index;  // an input of the internal ones
  std::optional<std::int64_t> output_type;   // of the internal ones
  std::string_view reduction = "mean";

  void fields(auto& f, const OpId& op) {
    if (op.name == "SoftmaxCrossEntropyLossGrad") f("ignore_index", ignore_index);
    if (op.name.starts_with("SoftmaxCrossEntropyLossInternal")) f("output_type", output_type);
    f("reduction", reduction);
  }
};
struct LossGradIn {
  enum Slot : std::size_t { kDy, kLogProb, kLabel, kWeight, kIgnoreIndex, kBias };
};

// LayerNormalizationGrad, SimplifiedLayerNormalizationGrad, InvertibleLayerNormalizationGrad.
struct NormGradAttrs {
  std::int64_t axis = -1;

  void fields(auto& f) { f("axis", axis); }
};
// The simplified one has no mean: its inverse deviation stands there.
struct LayerNormGradIn {
  enum Slot : std::size_t { kDy, kX, kScale, kMean, kInverse, kSimplifiedInverse = kMean };
};

struct BatchNormInternalAttrs {
  float epsilon = 1e-5F, momentum = 0.9F;
  bool training_mode = true;

  void fields(auto& f) {
    f("epsilon", epsilon);
    f("momentum", momentum);
    f("training_mode", training_mode);
  }
};
struct BatchNormGradIn {
  enum Slot : std::size_t { kDy, kX, kScale, kMean, kInverse };
};

struct ConvGradIn {
  enum Slot : std::size_t { kDy, kX, kW };
};

// MaxPoolGrad takes its result's extents from the file's annotations in ONNX Runtime. Here they come from one of two places:
// input 2, which passes/training_nodes.h adds to graphs from files, or an attribute of ours, whose extents of batch and channels
// do not count.
struct MaxPoolGradAttrs {
  std::optional<IntList> input_shape;

  void fields(auto& f) { f("input_shape", input_shape); }
};
struct MaxPoolGradIn {
  enum Slot : std::size_t { kDy, kIndices, kShape };
};

struct AveragePoolGradAttrs {
  WindowFields window;
  std::optional<IntList> input_shape;
  bool count_include_pad = false;

  void fields(auto& f) {
    window.fields(f);
    f("count_include_pad", count_include_pad);
    f("input_shape", input_shape);
  }
};
struct AveragePoolGradIn {
  enum Slot : std::size_t { kDy, kShape };
};

// GatherGrad: (shape, indices, dY). GatherElementsGrad: (dY, shape, indices). GatherNDGrad: as GatherGrad.
struct GatherGradIn {
  enum Slot : std::size_t { kShape, kIndices, kDy };
};

struct ScaleAttrs {
  bool scale_down = false;  // divides

  void fields(auto& f) { f("scale_down", scale_down); }
};

// AdamWOptimizer.
struct AdamWAttrs {
  float alpha = 0.9F, beta = 0.999F, epsilon = 1e-8F, weight_decay = 1e-2F;
  std::int64_t adam_mode = 0;  // 0: as PyTorch; 1: as Hugging Face's transformers
  bool correct_bias = true;

  void fields(auto& f) {
    f("adam_mode", adam_mode);
    f("alpha", alpha);
    f("beta", beta);
    f("correct_bias", correct_bias);
    f("epsilon", epsilon);
    f("weight_decay", weight_decay);
  }
};
struct AdamWIn {
  enum Slot : std::size_t { kRate, kStep, kWeights, kGradients, kMoments1, kMoments2, kSignal };
};
struct SgdIn {
  enum Slot : std::size_t { kRate, kWeights, kGradients, kSignal };
};

// InPlaceAccumulatorV2: (buffer, value, overwrite?) to (done, sum?).
struct AccumulatorIn {
  enum Slot : std::size_t { kBuffer, kValue, kFlag };
};

}  // namespace sdx::ops
