#pragma once
// A trained model for inference.

#include <filesystem>
#include <span>
#include <string>

#include <sdx/train/checkpoint.hpp>

namespace sdx::train {

// The part of the eval model that `outputs` need, with the state's parameters as initializers. Throws Error(invalid_argument)
// with the nearest name for an output that the model does not have.
void export_for_inference(const std::filesystem::path& eval_model, const CheckpointState& state,
                          const std::filesystem::path& path, std::span<const std::string> outputs);

}  // namespace sdx::train
