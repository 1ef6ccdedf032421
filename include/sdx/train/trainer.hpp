#pragma once
// Step-by-step training: ONNX Runtime 1.19's Module, Optimizer and LinearLRScheduler, and the simpler Trainer.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sdx/session.hpp>
#include <sdx/train/checkpoint.hpp>
#include <sdx/train/optimizer.hpp>

namespace sdx::train {

struct ModuleOptions {
  int threads = 0;         // 0: all cores
  std::uint64_t seed = 0;  // of dropout and other random operators; 0: the operators' own, else the clock's
  // Matrix products round their operands to bfloat16 if the processor has instructions for it (AVX512-BF16, Arm's BF16); sums,
  // parameters and everything else stay float32. On other processors it has no effect.
  bool bfloat16 = false;
};

// A training model and its eval model over the parameters of one state. Artifacts come from generate_artifacts() or from ONNX
// Runtime's training packages up to 1.19.2. Not thread-safe; it computes with `threads` threads.
class SDX_API Module {
 public:
  // `eval_model` may be empty. `state` outlives the module. Throws Error: io, invalid_model, not_implemented,
  // invalid_argument where the state lacks a parameter that the model takes, or has it in another type or shape.
  Module(const std::filesystem::path& training_model, CheckpointState& state, const std::filesystem::path& eval_model = {},
         const ModuleOptions& options = {});
  Module(Module&&) noexcept;
  Module& operator=(Module&&) noexcept;
  ~Module();

  // The user's inputs in the models' order. `eval`: of the eval model.
  const std::vector<std::string>& input_names(bool eval = false) const;
  const std::vector<std::string>& output_names(bool eval = false) const;

  // Runs forward and backward, adds the gradients to those accumulated since lazy_reset_grad(), and returns the outputs: the
  // loss (a scalar) first. Throws Error(invalid_argument) that names an input of the wrong type or shape; then nothing has
  // changed.
  std::vector<Tensor> train_step(std::span<const Tensor> inputs);
  std::vector<Tensor> eval_step(std::span<const Tensor> inputs);
  // Makes the next train_step() overwrite the gradients, as the first one does.
  void lazy_reset_grad();

  // The gradient accumulated for a trained parameter. Undefined before the first train_step().
  Tensor gradient(std::string_view parameter) const;

  CheckpointState& state();

  // A model for inference, with the parameters as initializers and these outputs of the eval model (or values on the way to its
  // loss); nodes that only the loss needs are left out. Throws Error(invalid_argument) with the nearest name.
  void export_model_for_inferencing(const std::filesystem::path& path, std::span<const std::string> outputs) const;

 private:
  friend class Optimizer;
  friend class Trainer;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Applies a module's gradients to its parameters.
class SDX_API Optimizer {
 public:
  // Reads an optimizer model of ONNX Runtime (AdamWOptimizer, SGDOptimizerV2) or of ours. The moments start at zero, or with
  // those of the state if it has any. `module` must outlive the optimizer.
  Optimizer(const std::filesystem::path& optimizer_model, Module& module);
  Optimizer(const OptimizerOptions& options, Module& module);
  Optimizer(Optimizer&&) noexcept;
  Optimizer& operator=(Optimizer&&) noexcept;
  ~Optimizer();

  // Throws Error(invalid_argument) before the first train_step().
  void step();
  void set_learning_rate(float rate);
  float learning_rate() const;          // initially 0.001, or the state's
  float initial_learning_rate() const;  // what schedules multiply
  std::int64_t steps() const;

 private:
  friend class Trainer;
  friend class LinearLRScheduler;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Rises from 0 to the initial rate in `warmup` steps, then falls to 0 at `total`. Starts at the optimizer's current step.
class SDX_API LinearLRScheduler {
 public:
  // `initial_rate`: without a value, the optimizer's rate. Sets the learning rate at once. Throws Error(invalid_argument) unless
  // 0 <= warmup < total.
  LinearLRScheduler(Optimizer& optimizer, std::int64_t warmup, std::int64_t total, std::optional<float> initial_rate = {});
  void step();

 private:
  void apply();

  Optimizer* optimizer_;
  Schedule schedule_;
  std::int64_t steps_ = 0;
};

struct TrainerOptions : ModuleOptions {
  std::optional<OptimizerOptions> optimizer;  // nothing: from the optimizer model beside the training model, else AdamW
  float learning_rate = 0.001F;
  Schedule schedule;
  std::int64_t accumulate = 1;  // batches whose gradients are summed before each update
  // If the loss or a gradient is not finite, skip the update and throw Error(runtime_failure) naming the step. Parameters keep
  // their values from before it. false: gradients are freed as soon as they were applied, which saves their memory.
  bool refuse_non_finite = true;
};

// Forward, backward and update compiled into one plan: parameters and moments are updated where they lie. Not thread-safe.
class SDX_API Trainer {
 public:
  // `artifacts`: a folder that generate_artifacts() wrote, or the training model's file in one. `state` outlives the trainer.
  Trainer(const std::filesystem::path& artifacts, CheckpointState& state, const TrainerOptions& options = {});
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;
  ~Trainer();

  const std::vector<std::string>& input_names() const;
  const std::vector<std::string>& output_names() const;

  // Trains on one batch and returns the loss before the update; last_outputs() has the training model's other outputs.
  float train_step(std::span<const Tensor> inputs);
  const std::vector<Tensor>& last_outputs() const;
  std::vector<Tensor> eval_step(std::span<const Tensor> inputs);

  float learning_rate() const;
  void set_learning_rate(float rate);  // from now on, instead of the schedule
  std::int64_t steps() const;          // updates

  CheckpointState& state();
  // Includes the optimiser's state and the state of random operators, so a trainer made from it continues with the same losses.
  // Gradients accumulated but not yet applied (`accumulate`) are not saved: save after an update.
  void save_checkpoint(const std::filesystem::path& path) const;
  void export_model_for_inferencing(const std::filesystem::path& path, std::span<const std::string> outputs) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sdx::train
