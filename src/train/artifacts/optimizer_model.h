#pragma once
// optimizer_model.onnx: one node over sequences of tensors.

#include <sdx/train/optimizer.hpp>

#include "graph/graph.h"

namespace sdx::train {

// Inputs learning_rate (float32[1]), step (int64[1]), then sequences of float32: params, gradients, first_order_moments,
// second_order_moments (these as far as there are moments; SGD has first_order_moments always, as in ONNX Runtime). One output: a
// boolean. AdamW is com.microsoft AdamWOptimizer, SGD without momentum and decay com.microsoft SGDOptimizerV2; every other one is
// Optimizer of our domain "sdx", whose attributes have the names of OptimizerOptions' members. With clip_norm, com.microsoft
// InplaceClipGradNorm comes before it.
// `opset`: of ai.onnx, which the file imports. `number`: of the first name that ONNX Runtime would count up here: the loss had
// the ones below it.
Model optimizer_model(const OptimizerOptions& options, int opset, int number);

// The options that such a model says. Throws Error(not_implemented) for another model, Error(invalid_argument) for values that
// make no sense.
OptimizerOptions optimizer_of(const Model& model);

}  // namespace sdx::train
