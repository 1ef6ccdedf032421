#pragma once
// Shared by Optimizer and LinearLRScheduler.

#include <vector>

#include <sdx/train/trainer.hpp>

#include "train/step/module_impl.h"
#include "train/step/rule.h"

namespace sdx::train {

struct Optimizer::Impl {
  Impl(const OptimizerOptions& given, Module::Impl& of);
  void step();
  OptimizerState& group() const { return module->state->optimizers[kGroup]; }

  OptimizerOptions options;
  Module::Impl* module;
  std::vector<std::size_t> trained;  // numbers in the state
  float rate = 0;
};

}  // namespace sdx::train
