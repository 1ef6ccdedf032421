#pragma once
// A training or eval model in the form that programs need: the owner of each input, the user's outputs, and the outputs that
// replace a parameter.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <sdx/train/checkpoint.hpp>

#include "graph/graph.h"

namespace sdx::train {

// One input of the user's, as the model declares it.
struct UserInput {
  std::string name;
  Type type;
};

struct TrainingGraph {
  // Inputs: the user's, then `parameters`. Outputs: the user's (the loss first), then the gradients of `trained`, then new values
  // of `replaced`. No node accumulates, and none has a seed of its own.
  Graph graph;
  std::string file;  // for messages
  std::vector<UserInput> inputs;
  std::vector<std::string> input_names, outputs;
  std::vector<std::size_t> parameters;  // numbers in the state
  std::vector<std::size_t> trained;     // numbers in `parameters`
  std::vector<std::size_t> replaced;    // the same: running statistics of batch normalisation
  bool random = false;                  // some node draws random numbers
  std::uint64_t seed = 0;               // what the nodes' own seeds give; 0 where they have none
};

// Throws Error: io, invalid_model, not_implemented; invalid_argument where the state lacks a parameter of the model's, or has it
// in another type or shape.
TrainingGraph read_training_model(const std::filesystem::path& path, const CheckpointState& state);
TrainingGraph read_eval_model(const std::filesystem::path& path, const CheckpointState& state);

// Throws Error(invalid_argument) that names the first input of another number, type or shape than the model takes. Extents of the
// same name must be equal.
void check_inputs(const TrainingGraph& model, std::span<const Tensor> inputs);

// A copy of the graph for inputs of these shapes and the state's parameters, with inferred types.
Graph bound_graph(const TrainingGraph& model, std::span<const Tensor> inputs, const CheckpointState& state);

}  // namespace sdx::train
