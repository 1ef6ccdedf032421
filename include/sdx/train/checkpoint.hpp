#pragma once
// Training state: parameters, the optimiser's state, properties. Follows ONNX Runtime 1.19's CheckpointState and its file format
// (a FlatBuffer with the identifier "ODTC"; reads versions 1 and 2, writes 2).

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <sdx/error.hpp>
#include <sdx/export.hpp>
#include <sdx/tensor.hpp>

namespace sdx::train {

using Property = std::variant<std::int64_t, float, std::string>;

struct Parameter {
  std::string name;
  Tensor value;  // in a nominal checkpoint only type and shape; data() is null
  bool requires_grad = true;
};

// Moments of one optimiser, by parameter and by the moment's name: "momentum0" and "momentum1" for AdamW, as in ONNX Runtime's
// files.
struct OptimizerState {
  std::int64_t step = 0;  // updates made so far
  float initial_learning_rate = 0.001F;
  std::map<std::string, std::map<std::string, Tensor>> moments;
};

// Plain data: copying copies handles of tensors, not what they hold; clone() copies all. Not thread-safe.
// A Module, an Optimizer and a Trainer work on the state that they were made with: they change its tensors in place, so that the
// state is always current between two of their calls.
class SDX_API CheckpointState {
 public:
  // Throws Error(io) if the file cannot be read, and Error(invalid_model) with the place of the damage if it is not a valid
  // checkpoint. Tensors are copies; external data is read from the file's neighbour "<path>.data".
  static CheckpointState load(const std::filesystem::path& path);
  static CheckpointState load(std::span<const std::byte> bytes);

  // Writes a temporary file and renames it, so an earlier checkpoint stays intact until the new one is complete. Tensors of more
  // than 1.9 GB go into "<path>.data". Throws Error(io); Error(invalid_argument) for string tensors or duplicate names.
  void save(const std::filesystem::path& path, bool include_optimizer_state = false) const;
  // The file's content. Throws Error(invalid_argument) for more than 1.9 GB.
  std::vector<std::byte> bytes(bool include_optimizer_state = false) const;

  // Parameters in the order of the training model's inputs, trained and frozen ones alike. Files hold the trained ones first, and
  // load() returns them in that order.
  std::vector<Parameter> parameters;
  std::map<std::string, OptimizerState> optimizers;  // by group; ONNX Runtime knows "group0"
  std::map<std::string, Property> properties;
  bool nominal = false;  // names, types and shapes only

  // Null if there is none.
  const Parameter* find(std::string_view name) const;
  Parameter* find(std::string_view name);
  // The same; throws Error(invalid_argument) with the nearest name.
  Parameter& at(std::string_view name);
  const Parameter& at(std::string_view name) const;

  CheckpointState clone() const;

  // Elements of all parameters (or of those that are trained), one after the other in the order of `parameters`: float32[n].
  // What federated averaging sends around. Throws Error(invalid_argument) where sizes differ, before anything is changed.
  std::int64_t size(bool trainable_only = true) const;
  Tensor to_buffer(bool trainable_only = true) const;
  // A nominal checkpoint becomes a full one, by a buffer of all its parameters.
  void from_buffer(const Tensor& buffer, bool trainable_only = true);
};

// Subtracts b from a, parameter by parameter; both must have the same names, types and shapes, else Error(invalid_argument) names
// the first that differs. Parameters that are not floating-point are taken from a. Properties and optimisers are dropped.
SDX_API CheckpointState difference(const CheckpointState& a, const CheckpointState& b);
// Returns base + factor * delta. Optimisers, properties and parameters that are not floating-point are taken from base.
SDX_API CheckpointState sum(const CheckpointState& base, const CheckpointState& delta, double factor = 1);
// The weighted mean of parameters (federated averaging: weights are sample counts), with weights normalised to a sum of 1. Empty
// `weights`: equal weights. Optimisers and properties are taken from the first state.
SDX_API CheckpointState average(std::span<const CheckpointState> states, std::span<const double> weights = {});

}  // namespace sdx::train
