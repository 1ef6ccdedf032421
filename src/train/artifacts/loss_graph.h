#pragma once
// The loss on top of a forward model.

#include <sdx/train/artifacts.hpp>

#include "graph/graph.h"

namespace sdx::train {

// Adds the loss and the input that it needs beside the model's own; returns the loss, a scalar. Values have the names that ONNX
// Runtime's generate_artifacts gives them, so that programs that ask for them by name go on. The graph's types are inferred, and
// are afterwards. Throws Error(invalid_argument) for options that do not fit the model.
ValueId add_loss(Model& model, const ArtifactOptions& options);

// The next number of a name: ONNX Runtime counts its names, those of the loss first.
int number_after(Loss loss);

// The value that the loss is computed of.
ValueId scores_of(const Graph& graph, const ArtifactOptions& options);

}  // namespace sdx::train
