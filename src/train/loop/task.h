#pragma once
// The requirements of a folder of artifacts for its data.

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <sdx/session.hpp>
#include <sdx/train/checkpoint.hpp>

#include "graph/graph.h"

namespace sdx::train::loop {

struct ArtifactPaths {
  std::filesystem::path folder, training, eval, optimizer, checkpoint;  // files that are not there are empty, but training
};
// `given`: a folder with one *training_model.onnx, or that file. Throws Error(io) that says how to make artifacts.
ArtifactPaths find_artifacts(const std::filesystem::path& given);

struct Task {
  std::vector<ValueSpec> inputs;                                    // the user's, in the training model's order
  std::size_t label = 0;                                            // which of them is what the model is to say
  bool classification = false;                                      // labels are numbers of classes
  std::int64_t classes = 0;                                         // 0: not known
  std::int64_t ignored = std::numeric_limits<std::int64_t>::min();  // a label that does not count
  std::string scores;      // the value that the loss compares with the labels; empty: not known
  std::int64_t batch = 0;  // that the models demand; 0: any

  const ValueSpec& label_input() const { return inputs.at(label); }
  // The inputs that are not a label.
  std::vector<std::size_t> features() const;
};

// `model`: the training or the eval model, as in the file. Parameters of `state` do not count as the user's inputs.
Task read_task(const Model& model, const CheckpointState& state);
// Whether the graph's input is one that the user gives.
bool is_users_input(std::string_view name, const CheckpointState& state);

// Makes `value` an output, behind the loss and the other ones that are no gradients. Returns its place among the outputs; -1
// where the graph has no such value.
int show_value(Graph& graph, const std::string& value);

}  // namespace sdx::train::loop
