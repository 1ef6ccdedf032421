#pragma once
// The parts of a module that Module, Optimizer and Trainer share.

#include <optional>

#include <sdx/train/trainer.hpp>

#include "train/step/program.h"
#include "train/step/training_graph.h"

namespace sdx::train {

struct Module::Impl {
  Impl(const std::filesystem::path& training_model, CheckpointState& given, const std::filesystem::path& eval_path,
       const ModuleOptions& module_options);

  std::vector<Tensor> train_step(std::span<const Tensor> inputs);
  std::vector<Tensor> eval_step(std::span<const Tensor> inputs);
  const TrainingGraph& eval_graph() const;  // throws Error(invalid_argument) where there is none
  // A graph for inputs of these shapes, optimised except for the use of the gradients.
  Graph optimized(const TrainingGraph& model, std::span<const Tensor> inputs) const;
  std::unique_ptr<plan::Program> compile_eval(std::span<const Tensor> inputs);

  void export_for_inference(const std::filesystem::path& path, std::span<const std::string> outputs) const;

  // New running statistics, which a program left at `results`, take the place of the old.
  void replace_statistics(std::span<const Value> results);

  CheckpointState* state;
  ModuleOptions options;
  TrainingGraph training;
  std::optional<TrainingGraph> eval;
  std::filesystem::path eval_path;
  Runner runner;
  ProgramCache programs, eval_programs;

  std::vector<Tensor> gradients;  // by number in training.trained; undefined before the first step
  bool reset = true;              // the next step overwrites them
  bool accumulates = false;       // they have been added up once: programs add, and a reset fills with zeros

 private:
  std::unique_ptr<plan::Program> compile_training(std::span<const Tensor> inputs, bool adds) const;
  void make_gradients();
};

}  // namespace sdx::train
