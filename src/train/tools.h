#pragma once
// The functions of libsdx_train.so for the command, which loads it on demand.

#include <filesystem>
#include <sdx/train/artifacts.hpp>
#include <sdx/train/checkpoint.hpp>
#include <span>

#include "base/module/module.h"

namespace sdx::train {

struct Tools {
  static constexpr ModuleName kModule{"libsdx_train.so.0", "sdx_train_tools", "SDX_TRAIN_LIB", "this command"};

  ModuleHead head;
  // Functions throw sdx::Error. They are those of sdx/train/checkpoint.hpp and artifacts.hpp.
  CheckpointState (*load)(const std::filesystem::path& path);
  void (*save)(const CheckpointState& state, const std::filesystem::path& path, bool include_optimizer_state);
  CheckpointState (*difference)(const CheckpointState& a, const CheckpointState& b);
  CheckpointState (*sum)(const CheckpointState& base, const CheckpointState& delta, double factor);
  CheckpointState (*average)(std::span<const CheckpointState> states, std::span<const double> weights);
  ArtifactFiles (*generate_artifacts)(const std::filesystem::path& model, const std::filesystem::path& directory,
                                      const ArtifactOptions& options);
  Loss (*loss_named)(std::string_view name);
  OptimizerKind (*optimizer_named)(std::string_view name);
};

}  // namespace sdx::train
