#pragma once
// Which constants of a forward model are parameters: inputs of the training model, kept in the checkpoint.

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

// `added`: names of new parameters (a new head, LoRA's), which are trained, and where requires_grad is empty they alone: what
// else could be trained is then frozen. In the model's order. Constants of Constant nodes are parameters where their very names
// are given: they become initializers. The rest of the model's constants stay in it. Throws Error(invalid_argument): names that
// meet nothing, a trained one that is not a float32, nothing to train.
std::vector<ChosenParameter> choose_parameters(Graph& graph, const ArtifactOptions& options,
                                               const std::vector<std::string>& added = {});

}  // namespace sdx::train
