#pragma once
// The layers before the first trained parameter produce the same numbers in every epoch. A model is cut in two there, and the
// results of the first part are computed once for all samples.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <sdx/session.hpp>
#include <sdx/train/checkpoint.hpp>
#include <sdx/train/fit.hpp>

#include "graph/graph.h"

namespace sdx::train::loop {

struct SplitModel {
  Model frozen;  // from the user's inputs to the features; parameters inside
  Model rest;    // features are inputs instead, and inputs that only the frozen part needs are gone
  std::vector<std::string> features;
};

// Cuts a training model whose types are inferred. Throws Error(invalid_argument) if there is nothing to gain, or if the
// part before the trained one differs between epochs: it draws random numbers, or depends on other samples of the batch.
// `label`: the input that is compared with what the model says.
SplitModel split_model(const Model& training, const CheckpointState& state, const std::string& label);
// Cuts an eval model at the same values. Throws Error(invalid_argument) where it lacks one.
SplitModel split_model_at(const Model& eval, const CheckpointState& state, const std::vector<std::string>& features);

struct FeatureOptions {
  std::int64_t batch = 32;
  bool fixed_batch = false;  // the model takes batches of this size alone
  int threads = 0;
  std::uint64_t memory = std::uint64_t{2} << 30;                        // of bytes; more lie in a temporary file
  std::function<void(std::int64_t done, std::int64_t total)> progress;  // samples
};

// The data of `samples` as the rest of a model takes them: `wanted` names features, and inputs of `given` (its inputs' names, in
// order). Throws Error: what the data and the session throw; invalid_argument where a sample's features depend on the others of
// its batch; io where the temporary file has no room.
std::unique_ptr<Dataset> feature_data(Dataset& samples, const std::vector<std::string>& given, const Session& frozen,
                                      const std::vector<std::string>& features, const std::vector<std::string>& wanted,
                                      const FeatureOptions& options);

}  // namespace sdx::train::loop
