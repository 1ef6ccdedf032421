#pragma once
// The models that artifacts consist of, from a forward model with its loss.

#include <string>
#include <vector>

#include <sdx/train/artifacts.hpp>

#include "graph/graph.h"
#include "train/artifacts/parameters.h"

namespace sdx::train {

// A forward model with its loss, whose types are inferred.
struct LossModel {
  Model model;
  ValueId loss = kNoValue;
  std::vector<ChosenParameter> parameters;
};

// The forward part and the loss in the form for inference, parameters as inputs.
Model eval_model(const LossModel& from, const ArtifactOptions& options);

// Forward part in the form for training, backward part, accumulation of gradients. `unreached` receives the names of parameters
// that no gradient reaches; the model is then useless, but there may be one without them. Throws Error(invalid_argument) if such
// a parameter was requested by its exact name, Error(not_implemented) naming a node that has no gradient.
Model training_model(const LossModel& from, const ArtifactOptions& options, std::vector<std::string>& unreached);

}  // namespace sdx::train
