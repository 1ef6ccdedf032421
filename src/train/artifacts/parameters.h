#pragma once
// Selects the constants of a forward model that are parameters: inputs of the training model, kept in the checkpoint.

#include <string>
#include <vector>

#include <sdx/train/artifacts.hpp>

#include "graph/graph.h"

namespace sdx::train {

struct ChosenParameter {
  std::string name;
  Tensor value;
  bool trained = true;
  bool asked = false;  // trained because its very name was given
};

// `added`: names of new parameters (a new head, LoRA's), which are trained; if requires_grad is empty, only these are, and all
// other candidates are frozen. In the model's order. Constants of Constant nodes are parameters if their exact names are given:
// they become initializers. The model's other constants stay in it. Throws Error(invalid_argument) for names without a match, a
// trained one that is not float32, and if there is nothing to train.
std::vector<ChosenParameter> choose_parameters(Graph& graph, const ArtifactOptions& options,
                                               const std::vector<std::string>& added = {});

}  // namespace sdx::train
